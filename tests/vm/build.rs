// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the observers' BPF programs into skeletons. The compiler is found by
//! build/bpf-clang, which .cargo/config.toml names.

use scx_cargo::BpfBuilder;

fn main() {
    // a builder makes one skeleton: the last one that it is told
    for (name, intf) in [
        ("observer", "observer"),
        ("places", "observer"),
        ("entries", "observer"),
        ("occupancy", "observer"),
        ("locks", "locks"),
        ("moves", "moves"),
        ("programs", "programs"),
        ("hold", "observer"),
        ("hooked", "observer"),
        ("faults", "observer"),
        ("wakes", "observer"),
        ("plain", "observer"),
        ("auditor", "auditor"),
        ("lazy", "observer"),
        ("leaving", "observer"),
        ("idling", "observer"),
    ] {
        let built = BpfBuilder::new().and_then(|mut b| {
            b.enable_intf(&format!("observer/{intf}.h"), &format!("{intf}_intf.rs"))
                .enable_skel(&format!("observer/{name}.bpf.c"), name)
                .build()
        });
        if let Err(e) = built {
            println!("cargo::error=the BPF program {name} did not build: {e:#}");
        }
    }
}
