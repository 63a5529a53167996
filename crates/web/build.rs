//! Lets the crate build where the pages were never built: an empty folder stands in for them, and the server then says
//! how to build them.

fn main() {
    println!("cargo:rerun-if-changed=ui/dist");
    if let Err(error) = std::fs::create_dir_all("ui/dist") {
        println!("cargo:warning=cannot make crates/web/ui/dist: {error}");
    }
}
