//! Link arguments of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The name by which programs ask for it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libheffte.so.2");
    // MPI keeps addresses of functions that it calls when it is finalized: never unloaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
