//! The requests of a recorded session as a HAR archive. Headers, cookies and bodies are left out: they contain credentials.

use std::collections::HashMap;

use browser::{parse_params, protocol as p};
use serde::Deserialize;
use serde_json::{Value, json};

use super::MAX_ENTRIES;

/// Larger events are not parsed; their URLs are data.
const MAX_EVENT_BYTES: usize = 64 << 10;
const MAX_URL_CHARS: usize = 2000;

/// The requests so far.
#[derive(Default)]
pub(super) struct NetworkLog {
    entries: Vec<Entry>,
    /// Requests in flight: the position of the entry of each id.
    open: HashMap<String, usize>,
    /// Requests that were not kept.
    missed: u64,
}

struct Entry {
    method: String,
    url: String,
    kind: String,
    /// Seconds since 1970.
    started: f64,
    /// The browser's clock, in seconds.
    sent: f64,
    answered: Option<f64>,
    ended: Option<f64>,
    status: u16,
    status_text: String,
    mime_type: String,
    protocol: String,
    bytes: f64,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    request_id: String,
    request: Request,
    #[serde(default)]
    timestamp: f64,
    #[serde(default)]
    wall_time: f64,
    #[serde(default, rename = "type")]
    kind: String,
    /// The answer to the request before, which led here.
    redirect_response: Option<Response>,
}

#[derive(Deserialize)]
struct Request {
    url: String,
    method: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    request_id: String,
    #[serde(default)]
    timestamp: f64,
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    status: u16,
    #[serde(default)]
    status_text: String,
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    protocol: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    request_id: String,
    #[serde(default)]
    timestamp: f64,
    #[serde(default)]
    encoded_data_length: f64,
    error_text: Option<String>,
}

fn cut(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}

impl NetworkLog {
    /// Records an event of the domain `Network`.
    pub(super) fn handle_event(&mut self, method: &str, params: &[u8]) {
        if params.len() > MAX_EVENT_BYTES {
            return;
        }
        match method {
            p::NETWORK_REQUEST_WILL_BE_SENT => {
                if let Ok(sent) = parse_params::<Sent>(params) {
                    self.send(&sent);
                }
            }
            p::NETWORK_RESPONSE_RECEIVED => {
                if let Ok(Answered { request_id, timestamp, response }) = parse_params(params) {
                    self.with(&request_id, |entry| entry.answer(timestamp, &response));
                }
            }
            p::NETWORK_LOADING_FINISHED | p::NETWORK_LOADING_FAILED => {
                if let Ok(ended) = parse_params::<Ended>(params) {
                    self.with(&ended.request_id, |entry| entry.end(&ended));
                    self.open.remove(&ended.request_id);
                }
            }
            _ => {}
        }
    }

    fn with(&mut self, id: &str, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.open.get(id).and_then(|index| self.entries.get_mut(*index)) {
            change(entry);
        }
    }

    fn send(&mut self, sent: &Sent) {
        if let Some(response) = &sent.redirect_response {
            self.with(&sent.request_id, |entry| {
                entry.answer(sent.timestamp, response);
                entry.ended = Some(sent.timestamp);
            });
        }
        if !sent.request.url.starts_with("http") && !sent.request.url.starts_with("ws") {
            return;
        }
        if self.entries.len() == MAX_ENTRIES {
            self.open.remove(&sent.request_id);
            self.missed += 1;
            return;
        }
        self.open.insert(cut(&sent.request_id, 100), self.entries.len());
        self.entries.push(Entry::new(sent));
    }

    /// Returns the archive.
    pub(super) fn to_har(&self) -> Value {
        let creator = json!({"name": "webgym", "version": env!("CARGO_PKG_VERSION")});
        let entries: Vec<Value> = self.entries.iter().map(Entry::to_har).collect();
        json!({"log": {"version": "1.2", "creator": creator, "entries": entries, "_missed": self.missed}})
    }
}

impl Entry {
    fn new(sent: &Sent) -> Self {
        Self {
            method: cut(&sent.request.method, 20),
            url: cut(&sent.request.url, MAX_URL_CHARS),
            kind: cut(&sent.kind, 20).to_ascii_lowercase(),
            started: sent.wall_time,
            sent: sent.timestamp,
            answered: None,
            ended: None,
            status: 0,
            status_text: String::new(),
            mime_type: String::new(),
            protocol: String::new(),
            bytes: 0.0,
            error: None,
        }
    }

    fn answer(&mut self, timestamp: f64, response: &Response) {
        self.answered = Some(timestamp);
        self.status = response.status;
        self.status_text = cut(&response.status_text, 100);
        self.mime_type = cut(&response.mime_type, 100);
        self.protocol = cut(&response.protocol, 20);
    }

    fn end(&mut self, ended: &Ended) {
        self.ended = Some(ended.timestamp);
        self.bytes = ended.encoded_data_length;
        self.error = ended.error_text.as_deref().map(|text| cut(text, 200));
    }

    fn to_har(&self) -> Value {
        let milliseconds = |from: f64, to: Option<f64>| to.map_or(0.0, |to| ((to - from) * 1000.0).max(0.0));
        let wait = milliseconds(self.sent, self.answered.or(self.ended));
        let receive = self.answered.map_or(0.0, |answered| milliseconds(answered, self.ended));
        let mut entry = json!({
            "startedDateTime": timestamp(self.started), "time": wait + receive,
            "request": {
                "method": self.method, "url": self.url, "httpVersion": self.protocol, "headers": [], "queryString": [],
                "cookies": [], "headersSize": -1, "bodySize": -1,
            },
            "response": {
                "status": self.status, "statusText": self.status_text, "httpVersion": self.protocol, "headers": [], "cookies": [],
                "content": {"size": -1, "mimeType": self.mime_type}, "redirectURL": "", "headersSize": -1, "bodySize": self.bytes,
            },
            "cache": {}, "timings": {"send": 0, "wait": wait, "receive": receive}, "_resourceType": self.kind,
        });
        if let Some(error) = &self.error {
            entry["_error"] = json!(error);
        }
        entry
    }
}

/// Formats seconds since 1970 as ISO 8601, which HAR wants.
fn timestamp(seconds: f64) -> String {
    let whole = seconds.max(0.0) as i64;
    let milliseconds = ((seconds.max(0.0) - whole as f64) * 1000.0) as i64;
    let (days, time) = (whole.div_euclid(86_400), whole.rem_euclid(86_400));
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Converts days since 1970 to a date of the Gregorian calendar, by the algorithm of Howard Hinnant.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(log: &mut NetworkLog, method: &str, params: &Value) {
        log.handle_event(method, params.to_string().as_bytes());
    }

    #[test]
    fn request_with_redirect_becomes_two_entries() {
        let mut log = NetworkLog::default();
        let sent = |url: &str, at: f64| {
            json!({"requestId": "1", "request": {"url": url, "method": "GET", "headers": {"cookie": "secret"}},
                "timestamp": at, "wallTime": 1_700_000_000.25, "type": "Document"})
        };
        record(&mut log, p::NETWORK_REQUEST_WILL_BE_SENT, &sent("http://a.test/", 1.0));
        let mut second = sent("http://a.test/next", 1.5);
        second["redirectResponse"] = json!({"status": 302, "statusText": "Found", "mimeType": "text/html"});
        record(&mut log, p::NETWORK_REQUEST_WILL_BE_SENT, &second);
        let answered =
            json!({"requestId": "1", "timestamp": 2.0, "response": {"status": 200, "mimeType": "text/html"}});
        record(&mut log, p::NETWORK_RESPONSE_RECEIVED, &answered);
        record(
            &mut log,
            p::NETWORK_LOADING_FINISHED,
            &json!({"requestId": "1", "timestamp": 2.25, "encodedDataLength": 99}),
        );
        record(&mut log, p::NETWORK_REQUEST_WILL_BE_SENT, &sent("data:text/html,x", 3.0));
        let har = log.to_har();
        let entries = har["log"]["entries"].as_array().unwrap();
        let of = |index: usize, path: &str| entries[index].pointer(path).cloned().unwrap_or_default();
        assert_eq!(entries.len(), 2);
        assert_eq!((of(0, "/response/status"), of(0, "/time")), (json!(302), json!(500.0)));
        assert_eq!((of(1, "/response/status"), of(1, "/timings/receive")), (json!(200), json!(250.0)));
        assert_eq!(of(0, "/startedDateTime"), "2023-11-14T22:13:20.250Z");
        assert!(!har.to_string().contains("secret"), "headers are left out");
    }

    #[test]
    fn requests_are_bounded() {
        let mut log = NetworkLog::default();
        for number in 0..MAX_ENTRIES + 10 {
            let id = number.to_string();
            let request = json!({"url": "http://a.test/", "method": "GET"});
            record(&mut log, p::NETWORK_REQUEST_WILL_BE_SENT, &json!({"requestId": id, "request": request}));
        }
        assert_eq!((log.entries.len(), log.missed), (MAX_ENTRIES, 10));
    }
}
