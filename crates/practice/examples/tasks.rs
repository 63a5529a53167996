//! Prints the practice tasks as a task file: `cargo run -p webgym-practice --example tasks -- http://127.0.0.1:4700`.

fn main() -> Result<(), serde_json::Error> {
    let base = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:4700".to_owned());
    print!("{}", practice::task_file(&base)?);
    Ok(())
}
