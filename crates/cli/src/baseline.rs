//! `webgym baseline`: serves the built-in policy with the API of vLLM.

use std::{net::IpAddr, process::ExitCode};

use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::signals::Signals;

#[derive(Args)]
pub(crate) struct BaselineArgs {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port to listen on; 0 for any free port.
    #[arg(long, default_value_t = 8000)]
    port: u16,
}

pub(crate) async fn run(args: &BaselineArgs) -> anyhow::Result<ExitCode> {
    let server = baseline::Server::start((args.host, args.port).into()).with_context(|| {
        format!("cannot listen on {}:{}; choose another port (0 picks a free one)", args.host, args.port)
    })?;
    println!("{}", json!({"event": "listening", "tier": "policy", "url": server.url()}));
    tracing::info!(
        "the baseline policy is served at {0}/v1/chat/completions. It cannot read images: start a run with env_config.vllm_server_url={0} \
         policy_config.base_model=baseline context_config.interaction_mode=set_of_marks context_config.page_text_lines=300",
        server.url()
    );
    Signals::listen()?.next().await;
    Ok(ExitCode::SUCCESS)
}
