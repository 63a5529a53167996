//! Connections that can be closed or reset without a response, for the obstacles that need it.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A response marked with this is not sent: the connection is closed or reset instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbortConnection {
    Close,
    Reset,
}

impl IntoResponse for AbortConnection {
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The error that makes hyper close a connection without a response.
#[derive(Debug)]
pub(crate) struct Aborted;

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("connection aborted on purpose")
    }
}

impl std::error::Error for Aborted {}

pub(crate) struct Connection {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Connection {
    /// If `reset` is true when the connection is dropped, the peer gets a TCP reset instead of a close.
    pub(crate) fn new(stream: TcpStream, reset: Arc<AtomicBool>) -> Self {
        Self { stream, reset }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed)
            && let Err(error) = self.stream.set_zero_linger()
        {
            tracing::debug!(%error, "cannot reset a connection; closing it instead");
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
