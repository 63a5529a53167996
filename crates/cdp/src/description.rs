//! Reads the protocol description of a browser. A browser serves it over HTTP only, not through its pipe, so a second one is
//! started for a moment, with a port of its own and without pages.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    connection::IgnoreEvents,
    launch::{Launch, LaunchError},
};

#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("cannot read the protocol description of the browser: {0}")]
    Read(#[from] std::io::Error),
    #[error("the browser did not serve its protocol description in time")]
    Timeout,
}

/// The largest description that is read; that of Chromium 156 has 1.4 MB.
const MAX_DESCRIPTION_BYTES: usize = 16 << 20;

impl Launch {
    /// Starts a browser, reads its description of the protocol, and ends it.
    pub async fn protocol_description(&self) -> Result<Value, DescriptionError> {
        let mut launch = self.clone();
        launch.extra_flags.push("--remote-debugging-port=0".to_owned());
        let process = launch.start(Arc::new(IgnoreEvents)).await?;
        let read = async { read_description(port(process.profile()).await).await };
        let description = timeout(self.start_timeout, read).await;
        process.close().await;
        Ok(description.map_err(|_| DescriptionError::Timeout)??)
    }
}

/// Returns the port of the browser, once it has written it to the profile.
async fn port(profile: &Path) -> u16 {
    let file = profile.join("DevToolsActivePort");
    loop {
        let text = tokio::fs::read_to_string(&file).await.unwrap_or_default();
        if let Some((port, _)) = text.split_once('\n')
            && let Ok(port) = port.parse()
        {
            return port;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn read_description(port: u16) -> std::io::Result<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET /json/protocol HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    let mut length = None;
    while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok().filter(|length| *length <= MAX_DESCRIPTION_BYTES);
        }
    }
    let length = length.ok_or_else(|| std::io::Error::other("the response has no valid length"))?;
    let mut body = vec![0; length];
    lines.into_inner().read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}
