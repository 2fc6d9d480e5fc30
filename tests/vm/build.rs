// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the observer's BPF program into a skeleton. The compiler is found
//! by build/bpf-clang, which .cargo/config.toml names.

fn main() {
    let built = scx_cargo::BpfBuilder::new().and_then(|mut b| {
        b.enable_intf("observer/observer.h", "observer_intf.rs")
            .enable_skel("observer/observer.bpf.c", "observer")
            .build()
    });
    if let Err(e) = built {
        println!("cargo::error=the observer's BPF program did not build: {e:#}");
    }
}
