// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the observers' BPF programs into skeletons. The compiler is found
//! by build/bpf-clang, which .cargo/config.toml names.

fn main() {
    let built = scx_cargo::BpfBuilder::new().and_then(|mut b| {
        b.enable_intf("observer/observer.h", "observer_intf.rs")
            .enable_skel("observer/observer.bpf.c", "observer")
            .enable_skel("observer/places.bpf.c", "places")
            .build()
    });
    if let Err(e) = built {
        println!("cargo::error=the observer's BPF program did not build: {e:#}");
    }
}
