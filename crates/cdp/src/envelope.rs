//! The envelope of a message from the browser, parsed only as far as routing needs: the recipient and the range of
//! the payload. Payloads stay raw JSON and are decoded by the caller.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sanitize::replace_lone_surrogates;

#[derive(Deserialize)]
struct RawEnvelope<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A message with its payload as a range of the received bytes, so that nothing is copied.
#[derive(Debug)]
pub(crate) enum Envelope {
    Reply { id: u64, outcome: Result<Range<usize>, Range<usize>> },
    Event { session: Option<String>, method: String, params: Range<usize> },
}

#[derive(Debug, Deserialize)]
pub(crate) struct RemoteError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
}

/// Parses the envelope of a message. Rewrites `message` if it contains invalid UTF-8 or lone surrogates.
pub(crate) fn open(message: &mut Bytes) -> Result<Envelope, String> {
    match parse(message) {
        Ok(envelope) => Ok(envelope),
        Err(first) => {
            // Strict parsers reject invalid UTF-8 and lone surrogates in a key: replace those and try again.
            let text = String::from_utf8_lossy(message).into_owned().into_bytes();
            *message = replace_lone_surrogates(&text).unwrap_or(text).into();
            parse(message).map_err(|_| first)
        }
    }
}

fn parse(message: &Bytes) -> Result<Envelope, String> {
    let raw: RawEnvelope<'_> = serde_json::from_slice(message).map_err(|e| e.to_string())?;
    let start = message.as_ptr() as usize;
    let range = |payload: Option<&RawValue>| {
        payload.map_or(0..0, |p| {
            let from = p.get().as_ptr() as usize - start;
            from..from + p.get().len()
        })
    };
    match (raw.id, raw.method) {
        (Some(id), _) => {
            let outcome = if raw.error.is_some() { Err(range(raw.error)) } else { Ok(range(raw.result)) };
            Ok(Envelope::Reply { id, outcome })
        }
        (None, Some(method)) => Ok(Envelope::Event {
            session: raw.session.map(Cow::into_owned),
            method: method.into_owned(),
            params: range(raw.params),
        }),
        (None, None) => Err("neither an id nor a method".to_owned()),
    }
}

/// Decodes a payload. If that fails, replaces lone surrogates in page text and tries again.
pub(crate) fn decode<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, String> {
    let payload = if payload.is_empty() { b"{}" } else { payload };
    serde_json::from_slice(payload).or_else(|first| match replace_lone_surrogates(payload) {
        Some(clean) => serde_json::from_slice(&clean).map_err(|e| e.to_string()),
        None => Err(first.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replies_and_events_are_distinguished() {
        let mut reply = Bytes::from_static(br#"{"id":7,"result":{"a":1},"sessionId":"S"}"#);
        let Envelope::Reply { id: 7, outcome: Ok(range) } = open(&mut reply).unwrap() else { panic!() };
        assert_eq!(&reply[range], br#"{"a":1}"#);

        let mut event =
            Bytes::from_static(br#"{"method":"Page.x","params":{"b":2},"sessionId":"S","new":[1]}"#);
        let Envelope::Event { session, method, params } = open(&mut event).unwrap() else { panic!() };
        assert_eq!(
            (session.as_deref(), method.as_str(), &event[params]),
            (Some("S"), "Page.x", &br#"{"b":2}"#[..])
        );

        let mut error = Bytes::from_static(br#"{"id":8,"error":{"code":-32000,"message":"no"}}"#);
        let Envelope::Reply { outcome: Err(range), .. } = open(&mut error).unwrap() else { panic!() };
        let remote: RemoteError = decode(&error[range]).unwrap();
        assert_eq!((remote.code, remote.message.as_str()), (-32000, "no"));
    }

    #[test]
    fn reply_with_lone_surrogate_is_decoded() {
        let mut reply = Bytes::from_static(br#"{"id":1,"result":{"value":"x\ud83cy"}}"#);
        let Envelope::Reply { outcome: Ok(range), .. } = open(&mut reply).unwrap() else { panic!() };
        let value: serde_json::Value = decode(&reply[range]).unwrap();
        assert_eq!(value["value"], "x\u{fffd}y");
    }

    #[test]
    fn reply_with_invalid_utf8_is_decoded() {
        let mut reply = Bytes::from_static(b"{\"id\":1,\"result\":{\"value\":\"x\xffy\"}}");
        let Envelope::Reply { id: 1, outcome: Ok(range) } = open(&mut reply).unwrap() else { panic!() };
        let value: serde_json::Value = decode(&reply[range]).unwrap();
        assert_eq!(value["value"], "x\u{fffd}y");
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = open(&mut Bytes::from(bytes));
        }
    }
}
