// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the policy headers for the host, and describes them to Rust.
//!
//! Their functions are `static inline`: bindgen writes a linkable twin of each.

use std::env;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=policy.h");
    println!("cargo:rerun-if-changed=../../src/bpf/policy");
    println!("cargo:rerun-if-changed=../../src/bpf/abi");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let twins = out.join("twins.c");
    bindgen::builder()
        .header("policy.h")
        .clang_arg("-I../../src/bpf")
        .allowlist_function("artis_.*")
        .allowlist_type("artis_.*")
        .allowlist_var("ARTIS_.*")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
        .derive_hash(true)
        .layout_tests(true)
        .wrap_static_fns(true)
        .wrap_static_fns_path(&twins)
        .generate()?
        .write_to_file(out.join("policy.rs"))?;
    cc::Build::new()
        .file(twins)
        .include(".")
        .include("../../src/bpf")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .opt_level(2)
        .compile("artis_policy");
    Ok(())
}
