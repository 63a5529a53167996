//! `webgym nginx-config`: prints what nginx needs to stand in front of one or more masters, and of a run's monitor. Every
//! limit in it is derived from the farm's own, so that nginx never gives up before the farm does. Touches nothing.

use std::{fmt::Write as _, net::Ipv6Addr, process::ExitCode, str::FromStr, time::Duration};

use clap::Args;
use farm::{Limits, api::MAX_WAIT_SECS};

#[derive(Args, Debug)]
pub(crate) struct NginxArgs {
    /// A master, by name or address. May be repeated.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7000")]
    master: Vec<Place>,
    /// The monitor of a run, to be shown under /monitor/. Start that run with a token.
    #[arg(long, value_name = "HOST:PORT")]
    monitor: Option<Place>,
    /// The name clients call this server by; *.example.org for all of a domain.
    #[arg(long, value_name = "NAME", default_value = "_")]
    server_name: ServerName,
    /// Where nginx listens: PORT or ADDRESS:PORT. Left out: 443 with a certificate, 80 without.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    listen: Option<Listen>,
    /// The certificate, with those between it and its root.
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    tls_cert: Option<FilePath>,
    /// The certificate's key.
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<FilePath>,
}

/// Where somebody is reached: a name or an address, and a port.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    host: String,
    port: u16,
}

#[derive(Clone, Debug)]
struct ServerName(String);

#[derive(Clone, Debug)]
struct Listen(String);

/// A path that can stand between quotes in nginx' language without being read as anything else.
#[derive(Clone, Debug)]
struct FilePath(String);

/// Letters, digits, dots, hyphens, underscores: nothing that means anything to nginx.
fn is_name(text: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(usual) && !text.starts_with(['-', '.'])
}

fn is_host(text: &str) -> bool {
    let inside = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.map_or_else(|| is_name(text), |address| address.parse::<Ipv6Addr>().is_ok())
}

fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(port),
        _ => Err(format!("{text:?} is no port; give a whole number from 1 to 65535")),
    }
}

impl FromStr for Place {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err("leave out what is before the host: 10.0.0.5:7000, not http://10.0.0.5:7000".into());
        }
        let (host, number) = text
            .rsplit_once(':')
            .ok_or_else(|| format!("{text:?} has no port; write HOST:PORT, for example 10.0.0.5:7000"))?;
        if !is_host(host) {
            return Err(format!(
                "{host:?} is no host; give a name, an IPv4 address, or an IPv6 address in brackets: [::1]:7000"
            ));
        }
        Ok(Self { host: host.to_owned(), port: port(number)? })
    }
}

impl FromStr for ServerName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("*.").unwrap_or(text);
        if text == "_" || is_name(rest) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("{text:?} is no name of a server; it looks like farm.example.org or *.example.org"))
    }
}

impl FromStr for Listen {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once(':') {
            None => port(text).map(|port| Self(port.to_string())),
            Some(("*", number)) => port(number).map(|port| Self(format!("*:{port}"))),
            Some(_) => text.parse().map(|place: Place| Self(format!("{}:{}", place.host, place.port))),
        }
    }
}

impl FromStr for FilePath {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(format!("{text:?} must be a whole path, starting with /"));
        }
        let foreign = |letter: char| letter.is_control() || matches!(letter, '"' | '\\' | '$');
        match text.chars().find(|letter| foreign(*letter)) {
            Some(letter) => Err(format!("{letter:?} cannot be in a path that nginx is to read")),
            None => Ok(Self(text.to_owned())),
        }
    }
}

pub(crate) fn run(args: &NginxArgs) -> ExitCode {
    print!("{}", render(args));
    ExitCode::SUCCESS
}

/// A little more than the farm's own limit, so that it is the farm that says what went wrong.
fn beyond(limit: Duration) -> String {
    format!("{}s", limit.as_secs() + limit.as_secs().div_ceil(60).max(30))
}

fn render(args: &NginxArgs) -> String {
    let mut text = String::from(
        "# In front of webgym's masters. Belongs into nginx' http block, for example as /etc/nginx/conf.d/webgym.conf;\n\
         # made by `webgym nginx-config`, which says what can be chosen. Check with nginx -t, then nginx -s reload.\n\n",
    );
    upstreams(&mut text, &args.master);
    text.push_str("server {\n");
    head(&mut text, args);
    proxying(&mut text);
    locations(&mut text, args);
    text.push_str("}\n");
    text
}

fn upstreams(text: &mut String, masters: &[Place]) {
    // Shorter than the farm keeps idle connections, or nginx would send into one that is just being closed.
    let idle = Limits::default().idle_timeout.as_secs() * 6 / 10;
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
            "# A /get that is asked again must reach the master that remembers its idempotency key.\n\
             map $arg_idempotency_key $webgym_get_key {\n    \"\" $request_id;\n    default $arg_idempotency_key;\n}\n\n",
        );
    }
}

fn head(text: &mut String, args: &NginxArgs) {
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
            "    # Without a certificate the farm's key travels readably: only for networks that nobody else is in.\n\n",
        ),
    }
}

fn proxying(text: &mut String) {
    let limits = Limits::default();
    let body = (limits.body_bytes >> 20) * 2;
    let _ = write!(
        text,
        "    # The farm refuses larger bodies than {} MiB in its own words; screenshots pass through memory, never a file.\n    \
         client_max_body_size {body}m;\n    client_body_buffer_size 1m;\n    large_client_header_buffers 4 64k;\n    \
         proxy_buffer_size 16k;\n    proxy_buffers 8 256k;\n    proxy_busy_buffers_size 512k;\n    \
         proxy_max_temp_file_size 0;\n\n    keepalive_timeout {}s;\n    keepalive_requests 100000;\n    \
         proxy_http_version 1.1;\n    proxy_set_header Connection \"\";\n    proxy_set_header Host $host;\n    \
         proxy_connect_timeout 5s;\n    proxy_send_timeout 60s;\n    proxy_read_timeout {};\n    \
         # A master that is away is passed over; a POST that one was sent is never sent to another.\n    \
         proxy_next_upstream error;\n\n",
        limits.body_bytes >> 20,
        limits.idle_timeout.as_secs(),
        beyond(limits.request_timeout),
    );
}

fn locations(text: &mut String, args: &NginxArgs) {
    let waiting = beyond(Duration::from_secs_f64(MAX_WAIT_SECS));
    let get = if args.master.len() > 1 { "webgym_get" } else { "webgym" };
    let _ = write!(
        text,
        "    # Callers may wait in line for {MAX_WAIT_SECS} s (wait_secs).\n    location = /get {{\n        \
         proxy_pass http://{get};\n        proxy_read_timeout {waiting};\n    }}\n    location / {{\n        \
         proxy_pass http://webgym;\n    }}\n",
    );
    if let Some(Place { host, port }) = &args.monitor {
        let _ = write!(
            text,
            "    # A stream of events: passed on as they come. Links carry a token, so that nothing is written down.\n    \
             location = /monitor {{\n        return 301 /monitor/;\n    }}\n    location /monitor/ {{\n        \
             proxy_pass http://{host}:{port}/;\n        proxy_buffering off;\n        proxy_read_timeout 1h;\n        \
             access_log off;\n    }}\n",
        );
    }
    text.push_str(
        "\n    # What nginx says itself, as the farm would say it.\n    error_page 502 504 @away;\n    \
         location @away {\n        default_type application/json;\n        \
         return 502 '{\"detail\":\"no master answers\",\"code\":\"node_unreachable\"}';\n    }\n    \
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

    fn printed(words: &[&str]) -> Result<String, String> {
        let line = Line::try_parse_from(std::iter::once(&"nginx-config").chain(words));
        line.map(|line| render(&line.args)).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_smuggled_in_through_an_argument() {
        for words in [
            ["--master", "a:7000; } server { listen 1"],
            ["--master", "a\nb:7000"],
            ["--master", "a b:7000"],
            ["--master", "a:7000;"],
            ["--master", "$host:7000"],
            ["--master", "unix:/run/x"],
            ["--master", "[::1;]:7000"],
            ["--monitor", "a/x:5000"],
            ["--server-name", "a;b"],
            ["--server-name", "~^(.*)$"],
            ["--server-name", "a\nb"],
            ["--server-name", ""],
            ["--listen", "80 default_server"],
            ["--listen", "80;"],
            ["--listen", "1.2.3.4;:80"],
        ] {
            assert!(printed(&words).is_err(), "{words:?} was taken");
        }
        for path in ["/a\"; include /etc/passwd", "/a\nb", "/$a", "/a\\", "relative.pem", ""] {
            assert!(printed(&["--tls-cert", path, "--tls-key", "/k"]).is_err(), "{path:?} was taken");
        }
    }

    #[test]
    fn errors_say_what_is_wanted() {
        for (words, wanted) in [
            (["--master", "http://10.0.0.5:7000"], "10.0.0.5:7000, not http://"),
            (["--master", "10.0.0.5"], "write HOST:PORT"),
            (["--master", "::1:7000"], "[::1]:7000"),
            (["--master", "a:0"], "1 to 65535"),
            (["--master", "a:70000"], "1 to 65535"),
            (["--listen", "http"], "1 to 65535"),
            (["--server-name", "a b"], "farm.example.org"),
            (["--tls-cert", "/c"], "--tls-key"),
        ] {
            let said = printed(&words).unwrap_err();
            assert!(said.contains(wanted), "{words:?}: {said}");
        }
    }

    #[test]
    fn nginx_is_more_patient_than_the_farm() {
        let text = printed(&[]).unwrap();
        let seconds = |line: &str| -> Vec<u64> {
            let values = text.lines().filter_map(|one| one.trim().strip_prefix(line)?.strip_suffix("s;"));
            values.map(|value| value.trim().parse().unwrap()).collect()
        };
        let limits = Limits::default();
        let reading = seconds("proxy_read_timeout");
        assert!(reading[0] > limits.request_timeout.as_secs(), "{reading:?}");
        assert!(reading[1] as f64 > MAX_WAIT_SECS, "{reading:?}");
        // The first is towards the farm, the second towards clients.
        let idle = seconds("keepalive_timeout");
        assert!(idle[0] < limits.idle_timeout.as_secs(), "{idle:?}");
    }

    #[test]
    fn a_single_master_needs_no_way_back_to_it() {
        assert!(!printed(&["--master", "a:1"]).unwrap().contains("webgym_get"));
        let two = printed(&["--master", "a:1", "--master", "[::1]:2"]).unwrap();
        assert!(two.contains("proxy_pass http://webgym_get;") && two.contains("server [::1]:2 "), "{two}");
    }
}
