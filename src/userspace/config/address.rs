// SPDX-License-Identifier: GPL-2.0-only
//! Where metrics are served: nowhere but on this machine, unless told.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where metrics are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// At a port.
    Tcp(SocketAddr),
    /// At a UNIX socket.
    Unix(PathBuf),
}

impl Address {
    /// Does only this machine reach it?
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(Self::Unix(path.into())),
                false => Err("the path of a UNIX socket must be absolute".to_owned()),
            };
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            "not an address with a port (127.0.0.1:9464, [::1]:9464) and not unix:/PATH; names \
             are not looked up"
                .to_owned()
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_sockets_are_local() {
        let local = |text: &str| text.parse::<Address>().expect("an address").is_local();
        for text in ["127.0.0.1:9464", "127.9.9.9:1", "[::1]:9464", "[::ffff:127.0.0.1]:9464"] {
            assert!(local(text), "{text}");
        }
        assert!(local("unix:/run/scx_artis/metrics.sock"));
        for text in ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464", "[::ffff:192.0.2.1]:9464"] {
            assert!(!local(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_explained() {
        for (text, words) in [
            ("localhost:9464", "names are not looked up"),
            ("127.0.0.1", "with a port"),
            ("9464", "with a port"),
            ("unix:metrics.sock", "absolute"),
        ] {
            let error = text.parse::<Address>().expect_err("no address");
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn it_is_shown_as_it_was_given() {
        for text in ["127.0.0.1:9464", "[::1]:9464", "unix:/run/scx_artis/metrics.sock"] {
            assert_eq!(
                text.parse::<Address>().map(|address| address.to_string()).as_deref(),
                Ok(text)
            );
        }
    }
}
