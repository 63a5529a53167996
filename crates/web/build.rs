//! Lets the crate compile before the pages are built: creates an empty folder for them. The server then shows how to build
//! them.

fn main() {
    println!("cargo:rerun-if-changed=ui/dist");
    if let Err(error) = std::fs::create_dir_all("ui/dist") {
        println!("cargo:warning=cannot create crates/web/ui/dist: {error}");
    }
}
