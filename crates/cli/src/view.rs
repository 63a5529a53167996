//! `webgym view`: a page that looks through saved trajectories, also those of a run that is still writing.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use store::SavePath;
use web::{page, view::View};

use crate::signals::Signals;

#[derive(Args)]
pub(crate) struct ViewArgs {
    /// Where a run saves its trajectories.
    save_path: PathBuf,
    /// The address to listen on. Beyond loopback the page needs a token.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    host: IpAddr,
    /// 0 picks a free one.
    #[arg(long, default_value_t = 5001, value_name = "PORT")]
    port: u16,
    /// What the link must carry. Without one and beyond loopback, one is made.
    #[arg(long, env = "WEBGYM_VIEW_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// A folder outside of the save path from which screenshots may be shown too. May be given several times.
    #[arg(long, value_name = "DIR")]
    images: Vec<PathBuf>,
}

pub(crate) async fn run(args: ViewArgs) -> anyhow::Result<ExitCode> {
    let metadata = std::fs::metadata(&args.save_path)
        .with_context(|| format!("cannot look at {}", args.save_path.display()))?;
    if !metadata.is_dir() {
        anyhow::bail!("{} is a file; name the save path, the folder it lies below", args.save_path.display());
    }
    let view = View::new(SavePath::new(&args.save_path), args.images);
    let empty = view.contents()?.iterations.is_empty();
    let address = SocketAddr::new(args.host, args.port);
    let mut signals = Signals::listen()?;
    let mut place = page::serve(address, args.token, web::view::router(view)).await?;
    if empty {
        println!("There are no trajectories under {} yet.", args.save_path.display());
    }
    println!("Looking at {}: open {}  (Ctrl-C ends it)", args.save_path.display(), place.shown_link());
    tokio::select! {
        () = place.forever() => {}
        () = signals.next() => {}
    }
    Ok(ExitCode::SUCCESS)
}
