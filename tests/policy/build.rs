// SPDX-License-Identifier: GPL-2.0-only
//! Compiles shim.c, which includes the policy headers, for the host.

fn main() {
    println!("cargo:rerun-if-changed=shim.c");
    println!("cargo:rerun-if-changed=../../src/bpf/policy");
    println!("cargo:rerun-if-changed=../../src/bpf/abi");
    cc::Build::new()
        .file("shim.c")
        .include("../../src/bpf")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .opt_level(1)
        .compile("artis_policy");
}
