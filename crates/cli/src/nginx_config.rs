//! `webgym nginx-config`: prints an nginx configuration for one or more masters, a run's monitor and an environment server. Its limits are derived
//! from the farm's defaults, so that nginx never times out before the farm does. Writes no files.

use std::{fmt::Write as _, net::Ipv6Addr, process::ExitCode, str::FromStr, time::Duration};

use clap::Args;
use farm::{ServerLimits, api::MAX_WAIT_SECS};

#[derive(Args, Debug)]
pub(crate) struct NginxArgs {
    /// Host and port of a master. Can be repeated.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7000")]
    master: Vec<HostPort>,
    /// Host and port of a run's monitor, to be served under /monitor/. Start that run with a token.
    #[arg(long, value_name = "HOST:PORT")]
    monitor: Option<HostPort>,
    /// Host and port of an environment server (webgym env), to be served under /env/. Start it with an API key.
    #[arg(long, value_name = "HOST:PORT")]
    env: Option<HostPort>,
    /// The server name that clients use; *.example.org for all names of a domain.
    #[arg(long, value_name = "NAME", default_value = "_")]
    server_name: ServerName,
    /// Where nginx listens: PORT or ADDRESS:PORT. Default: 443 with a certificate, 80 without.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    listen: Option<Listen>,
    /// The certificate with its intermediate certificates.
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    tls_cert: Option<FilePath>,
    /// The private key of the certificate.
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<FilePath>,
}

/// A host, by name or address, and a port.
#[derive(Clone, Debug, PartialEq)]
struct HostPort {
    host: String,
    port: u16,
}

#[derive(Clone, Debug)]
struct ServerName(String);

#[derive(Clone, Debug)]
struct Listen(String);

/// A path that is safe inside a quoted string of an nginx configuration.
#[derive(Clone, Debug)]
struct FilePath(String);

/// Accepts letters, digits, dots, hyphens and underscores, none of which nginx interprets.
fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(is_allowed) && !text.starts_with(['-', '.'])
}

fn is_host(text: &str) -> bool {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    bracketed.map_or_else(|| is_name(text), |address| address.parse::<Ipv6Addr>().is_ok())
}

fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(port),
        _ => Err(format!("{text:?} is not a port; give a whole number from 1 to 65535")),
    }
}

impl FromStr for HostPort {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err("omit the scheme: 10.0.0.5:7000, not http://10.0.0.5:7000".into());
        }
        let (host, number) = text
            .rsplit_once(':')
            .ok_or_else(|| format!("{text:?} has no port; write HOST:PORT, for example 10.0.0.5:7000"))?;
        if !is_host(host) {
            return Err(format!(
                "{host:?} is not a host; give a name, an IPv4 address, or an IPv6 address in brackets: [::1]:7000"
            ));
        }
        Ok(Self { host: host.to_owned(), port: parse_port(number)? })
    }
}

impl FromStr for ServerName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("*.").unwrap_or(text);
        if text == "_" || is_name(rest) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("{text:?} is not a server name; give one like farm.example.org or *.example.org"))
    }
}

impl FromStr for Listen {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once(':') {
            None => parse_port(text).map(|port| Self(port.to_string())),
            Some(("*", number)) => parse_port(number).map(|port| Self(format!("*:{port}"))),
            Some(_) => {
                text.parse().map(|address: HostPort| Self(format!("{}:{}", address.host, address.port)))
            }
        }
    }
}

impl FromStr for FilePath {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(format!("{text:?} must be an absolute path, starting with /"));
        }
        let is_unsafe = |letter: char| letter.is_control() || matches!(letter, '"' | '\\' | '$');
        match text.chars().find(|letter| is_unsafe(*letter)) {
            Some(letter) => Err(format!("a path in an nginx configuration cannot contain {letter:?}")),
            None => Ok(Self(text.to_owned())),
        }
    }
}

pub(crate) fn run(args: &NginxArgs) -> ExitCode {
    print!("{}", render(args));
    ExitCode::SUCCESS
}

/// Returns a time slightly above the farm's limit, so that the farm reports the error before nginx does.
fn longer_than(limit: Duration) -> String {
    format!("{}s", limit.as_secs() + limit.as_secs().div_ceil(60).max(30))
}

fn render(args: &NginxArgs) -> String {
    let mut text = String::from(
        "# Reverse proxy for webgym masters, for the http block of nginx, for example as /etc/nginx/conf.d/webgym.conf.\n\
         # Generated by `webgym nginx-config` (see its --help). Check with nginx -t, then run nginx -s reload.\n\n",
    );
    write_upstreams(&mut text, &args.master);
    text.push_str("server {\n");
    write_listen(&mut text, args);
    write_proxy_settings(&mut text);
    write_locations(&mut text, args);
    text.push_str("}\n");
    text
}

fn write_upstreams(text: &mut String, masters: &[HostPort]) {
    // Shorter than the farm's default idle timeout, so that nginx does not use a connection that is being closed.
    let idle = ServerLimits::default().idle_timeout.as_secs() * 6 / 10;
    let mut upstream = |name: &str, choice: &str| {
        let _ = writeln!(text, "upstream {name} {{\n    {choice};");
        for master in masters {
            let _ = writeln!(text, "    server {}:{} max_fails=2 fail_timeout=5s;", master.host, master.port);
        }
        let _ = writeln!(
            text,
            "    keepalive 256;\n    keepalive_timeout {idle}s;\n    keepalive_requests 100000;\n}}\n"
        );
    };
    upstream("webgym", "least_conn");
    if masters.len() > 1 {
        upstream("webgym_get", "hash $webgym_get_key consistent");
        text.push_str(
            "# Without Redis, a repeated /get must reach the master that answered the first one.\n\
             map $arg_idempotency_key $webgym_get_key {\n    \"\" $request_id;\n    default $arg_idempotency_key;\n}\n\n",
        );
    }
}

fn write_listen(text: &mut String, args: &NginxArgs) {
    let tls = args.tls_cert.as_ref().zip(args.tls_key.as_ref());
    let default = if tls.is_some() { "443" } else { "80" };
    let listen = args.listen.as_ref().map_or(default, |listen| listen.0.as_str());
    let ssl = if tls.is_some() { " ssl" } else { "" };
    let _ = writeln!(text, "    listen {listen}{ssl};\n    server_name {};\n", args.server_name.0);
    match tls {
        Some((certificate, key)) => {
            let _ = write!(
                text,
                "    ssl_certificate \"{}\";\n    ssl_certificate_key \"{}\";\n    ssl_protocols TLSv1.2 TLSv1.3;\n    \
                 ssl_session_cache shared:webgym:10m;\n    ssl_session_timeout 1h;\n    ssl_session_tickets off;\n\n",
                certificate.0, key.0
            );
        }
        None => text.push_str(
            "    # Without TLS the API key is sent in clear text: use this only in a private network.\n\n",
        ),
    }
}

fn write_proxy_settings(text: &mut String) {
    let limits = ServerLimits::default();
    let body = (limits.body_bytes >> 20) * 2;
    let _ = write!(
        text,
        "    # The farm itself refuses bodies above {} MiB; screenshots are buffered in memory, never in a file.\n    \
         client_max_body_size {body}m;\n    client_body_buffer_size 1m;\n    large_client_header_buffers 4 64k;\n    \
         proxy_buffer_size 16k;\n    proxy_buffers 8 256k;\n    proxy_busy_buffers_size 512k;\n    \
         proxy_max_temp_file_size 0;\n\n    keepalive_timeout {}s;\n    keepalive_requests 100000;\n    \
         proxy_http_version 1.1;\n    proxy_set_header Connection \"\";\n    # The farm returns addresses below the one that its client used.\n    \
         proxy_set_header Host $http_host;\n    proxy_set_header X-Forwarded-Proto $scheme;\n    \
         proxy_connect_timeout 5s;\n    proxy_send_timeout 60s;\n    proxy_read_timeout {};\n    \
         # An unreachable master is skipped; a POST that reached one master is never sent to another.\n    \
         proxy_next_upstream error;\n\n",
        limits.body_bytes >> 20,
        limits.idle_timeout.as_secs(),
        longer_than(limits.request_timeout),
    );
}

fn write_locations(text: &mut String, args: &NginxArgs) {
    let waiting = longer_than(Duration::from_secs_f64(MAX_WAIT_SECS));
    let get = if args.master.len() > 1 { "webgym_get" } else { "webgym" };
    let _ = write!(
        text,
        "    # Clients may wait for a lease for {MAX_WAIT_SECS} s (wait_secs).\n    location = /get {{\n        \
         proxy_pass http://{get};\n        proxy_read_timeout {waiting};\n    }}\n    location / {{\n        \
         proxy_pass http://webgym;\n    }}\n",
    );
    text.push_str(
        "    # CDP clients and live views, with their WebSockets. Their addresses contain a secret, so requests are not logged.\n    \
         location ~ ^/(cdp|live)/ {\n        proxy_pass http://webgym;\n        proxy_set_header Upgrade $http_upgrade;\n        \
         proxy_set_header Connection \"upgrade\";\n        proxy_set_header Host $http_host;\n        \
         proxy_set_header X-Forwarded-Proto $scheme;\n        proxy_buffering off;\n        \
         proxy_read_timeout 1h;\n        proxy_send_timeout 1h;\n        access_log off;\n    }\n",
    );
    if let Some(HostPort { host, port }) = &args.monitor {
        let _ = write!(
            text,
            "    # An event stream must not be buffered. Links contain a token, so requests are not logged.\n    \
             location = /monitor {{\n        return 301 /monitor/;\n    }}\n    location /monitor/ {{\n        \
             proxy_pass http://{host}:{port}/;\n        proxy_buffering off;\n        proxy_read_timeout 1h;\n        \
             access_log off;\n    }}\n",
        );
    }
    if let Some(HostPort { host, port }) = &args.env {
        let _ = write!(
            text,
            "    # An environment server, with its WebSockets. A client may think for as long as --idle-secs between two steps.\n    \
             location = /env {{\n        return 301 /env/;\n    }}\n    location /env/ {{\n        \
             proxy_pass http://{host}:{port}/;\n        proxy_set_header Upgrade $http_upgrade;\n        \
             proxy_set_header Connection \"upgrade\";\n        proxy_set_header Host $http_host;\n        \
             proxy_set_header X-Forwarded-Proto $scheme;\n        proxy_buffering off;\n        \
             proxy_read_timeout 1h;\n        proxy_send_timeout 1h;\n    }}\n",
        );
    }
    text.push_str(
        "\n    # Errors of nginx itself in the format of the farm.\n    error_page 502 504 @unreachable;\n    \
         location @unreachable {\n        default_type application/json;\n        \
         return 502 '{\"detail\":\"no master responds\",\"code\":\"node_unreachable\"}';\n    }\n    \
         error_page 413 @large;\n    location @large {\n        default_type application/json;\n        \
         return 413 '{\"detail\":\"the body is too large\",\"code\":\"too_large\"}';\n    }\n",
    );
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: NginxArgs,
    }

    fn generate(arguments: &[&str]) -> Result<String, String> {
        let line = Line::try_parse_from(std::iter::once(&"nginx-config").chain(arguments));
        line.map(|line| render(&line.args)).map_err(|error| error.to_string())
    }

    #[test]
    fn unsafe_arguments_are_refused() {
        for arguments in [
            ["--master", "a:7000; } server { listen 1"],
            ["--master", "a\nb:7000"],
            ["--master", "a b:7000"],
            ["--master", "a:7000;"],
            ["--master", "$host:7000"],
            ["--master", "unix:/run/x"],
            ["--master", "[::1;]:7000"],
            ["--monitor", "a/x:5000"],
            ["--env", "a/x:8000"],
            ["--server-name", "a;b"],
            ["--server-name", "~^(.*)$"],
            ["--server-name", "a\nb"],
            ["--server-name", ""],
            ["--listen", "80 default_server"],
            ["--listen", "80;"],
            ["--listen", "1.2.3.4;:80"],
        ] {
            assert!(generate(&arguments).is_err(), "{arguments:?} was accepted");
        }
        for path in ["/a\"; include /etc/passwd", "/a\nb", "/$a", "/a\\", "relative.pem", ""] {
            assert!(generate(&["--tls-cert", path, "--tls-key", "/k"]).is_err(), "{path:?} was accepted");
        }
    }

    #[test]
    fn errors_say_what_is_accepted() {
        for (arguments, wanted) in [
            (["--master", "http://10.0.0.5:7000"], "10.0.0.5:7000, not http://"),
            (["--master", "10.0.0.5"], "write HOST:PORT"),
            (["--master", "::1:7000"], "[::1]:7000"),
            (["--master", "a:0"], "1 to 65535"),
            (["--master", "a:70000"], "1 to 65535"),
            (["--listen", "http"], "1 to 65535"),
            (["--server-name", "a b"], "farm.example.org"),
            (["--tls-cert", "/c"], "--tls-key"),
        ] {
            let error = generate(&arguments).unwrap_err();
            assert!(error.contains(wanted), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn nginx_timeouts_exceed_those_of_the_farm() {
        let text = generate(&[]).unwrap();
        let seconds = |line: &str| -> Vec<u64> {
            let values = text.lines().filter_map(|one| one.trim().strip_prefix(line)?.strip_suffix("s;"));
            values.map(|value| value.trim().parse().unwrap()).collect()
        };
        let limits = ServerLimits::default();
        let reading = seconds("proxy_read_timeout");
        assert!(reading[0] > limits.request_timeout.as_secs(), "{reading:?}");
        assert!(reading[1] as f64 > MAX_WAIT_SECS, "{reading:?}");
        // The first is for connections to the farm, the second for those to clients.
        let idle = seconds("keepalive_timeout");
        assert!(idle[0] < limits.idle_timeout.as_secs(), "{idle:?}");
    }

    #[test]
    fn single_master_needs_no_key_hashing() {
        assert!(!generate(&["--master", "a:1"]).unwrap().contains("webgym_get"));
        let two = generate(&["--master", "a:1", "--master", "[::1]:2"]).unwrap();
        assert!(two.contains("proxy_pass http://webgym_get;") && two.contains("server [::1]:2 "), "{two}");
    }
}
