// SPDX-License-Identifier: GPL-2.0-only
//! Who follows whom, as a table.

use super::Following;

/// Renders the pairs; every line ends with a line feed.
pub fn render(pairs: &[Following]) -> String {
    if pairs.is_empty() {
        return "nobody follows anybody\n".to_owned();
    }
    let mut rows = vec![["CONSUMER", "NAME", "FOLLOWS", "NAME"].map(str::to_owned)];
    rows.extend(pairs.iter().map(|pair| {
        [
            pair.consumer.to_string(),
            pair.consumer_comm.clone(),
            pair.producer.to_string(),
            pair.producer_comm.clone(),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let [ids, names, others] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for [id, name, other, other_name] in &rows {
        text += &format!("{id:>ids$}  {name:<names$}  {other:>others$}  {other_name}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_a_table() {
        let pair = |consumer, producer| Following {
            consumer,
            consumer_comm: "mixer0".into(),
            producer,
            producer_comm: "w".into(),
        };
        assert_eq!(render(&[]), "nobody follows anybody\n");
        assert_eq!(
            render(&[pair(12, 7), pair(5, 1234)]),
            "CONSUMER  NAME    FOLLOWS  NAME\n      \
             12  mixer0        7  w\n       \
             5  mixer0     1234  w\n"
        );
    }
}
