//! `webgym view`: serves the viewer of saved trajectories, including those of a run in progress.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use store::SavePath;
use web::{server, view::View};

use crate::signals::Signals;

#[derive(Args)]
pub(crate) struct ViewArgs {
    /// Save path of a run.
    save_path: PathBuf,
    /// Address to listen on. Outside loopback, a token is required.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    host: IpAddr,
    /// Port to listen on; 0 picks a free port.
    #[arg(long, default_value_t = 5001, value_name = "PORT")]
    port: u16,
    /// Token for the viewer. If one is required and none is given, a token is generated and printed.
    #[arg(long, env = "WEBGYM_VIEW_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// Folder outside the save path from which screenshots may be shown too. May be given several times.
    #[arg(long, value_name = "DIR")]
    images: Vec<PathBuf>,
}

pub(crate) async fn run(args: ViewArgs) -> anyhow::Result<ExitCode> {
    let metadata = std::fs::metadata(&args.save_path)
        .with_context(|| format!("cannot read {}", args.save_path.display()))?;
    if !metadata.is_dir() {
        anyhow::bail!(
            "{} is a file; pass the save path, the folder that contains the trajectories",
            args.save_path.display()
        );
    }
    let view = View::new(SavePath::new(&args.save_path), args.images);
    let is_empty = view.contents()?.iterations.is_empty();
    let address = SocketAddr::new(args.host, args.port);
    let mut signals = Signals::listen()?;
    let mut server = server::serve(address, args.token, web::view::router(view)).await?;
    if is_empty {
        println!("There are no trajectories under {} yet.", args.save_path.display());
    }
    println!("Viewing {}: open {}  (Ctrl-C stops it)", args.save_path.display(), server.shown_link());
    tokio::select! {
        () = server.wait() => {}
        () = signals.next() => {}
    }
    Ok(ExitCode::SUCCESS)
}
