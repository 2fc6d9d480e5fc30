// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side and generates its two Rust faces in `OUT_DIR`:
//! `abi.rs` (bindgen on src/bpf/abi/abi.h) and `bpf_skel.rs` (the skeleton); beside them the
//! object `change.bpf.o`.
//!
//! Which clang: `BPF_CLANG`, which .cargo/config.toml points at build/bpf-clang.

use scx_cargo::BpfBuilder;

const BPF_DIR: &str = "src/bpf";

fn main() {
    // The builder watches one directory; a path that is a directory is watched
    // with all that is below it.
    println!("cargo:rerun-if-changed={BPF_DIR}");
    println!("cargo:rerun-if-changed=build/bpf-clang");
    println!("cargo:rerun-if-env-changed=LIBCLANG_PATH");

    let built = BpfBuilder::new().and_then(|mut builder| {
        builder
            .enable_intf("src/bpf/abi/abi.h", "abi.rs")
            .enable_skel("src/bpf/main.bpf.c", "bpf")
            .build()?;
        BpfBuilder::new()?.enable_skel("src/bpf/change.bpf.c", "change").build()
    });
    if let Err(error) = built {
        eprintln!(
            "error: the BPF side in {BPF_DIR}/ did not build: {error:#}\n{}",
            advice(&format!("{error:#}"))
        );
        std::process::exit(1);
    }
}

/// What to do about a failed BPF build, by the words of its error.
fn advice(error: &str) -> &'static str {
    if error.contains("clang <") || error.contains("clang version") {
        "  Install a clang >= 18 (Debian, Ubuntu: apt-get install clang-19) or name yours: \
         BPF_CLANG=/path/to/clang cargo build"
    } else {
        "  If it is clang that complains, its own words are at the end of the error above. \
         The headers of scx that it was given lie in \
         target/*/build/scx_artis-*/out/scx_utils-bpf_h/."
    }
}
