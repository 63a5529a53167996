//! The attacker's DNS server: its answers can change at any time and must not be cached.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use tokio::net::UdpSocket;

/// The answer for a name.
#[derive(Clone)]
pub(crate) enum Answer {
    /// All of these addresses, every time.
    All(Vec<Ipv4Addr>),
    /// One address per query, in turn.
    InTurn(Vec<Ipv4Addr>, usize),
}

#[derive(Clone, Default)]
pub(crate) struct DnsServer(Arc<Mutex<HashMap<String, Answer>>>);

const TYPE_A: u16 = 1;

impl DnsServer {
    /// Listens on the DNS port of this network namespace.
    pub(crate) async fn start() -> Self {
        let names = Self::default();
        let socket = UdpSocket::bind("127.0.0.1:53").await.expect("the DNS port");
        let known = names.clone();
        tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                if let Some(answer) = known.answer(&question[..length]) {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        names
    }

    pub(crate) fn set(&self, name: &str, answer: Answer) {
        self.0.lock().expect("no panic").insert(name.to_owned(), answer);
    }

    fn addresses(&self, name: &str) -> Vec<Ipv4Addr> {
        match self.0.lock().expect("no panic").get_mut(name) {
            Some(Answer::All(all)) => all.clone(),
            Some(Answer::InTurn(all, queries)) => {
                *queries += 1;
                vec![all[(*queries - 1) % all.len()]]
            }
            None => Vec::new(),
        }
    }

    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let (mut offset, mut labels) = (12, Vec::new());
        loop {
            let length = usize::from(*question.get(offset)?);
            offset += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(question.get(offset..offset + length)?).to_ascii_lowercase());
            offset += length;
        }
        let kind = u16::from_be_bytes([*question.get(offset)?, *question.get(offset + 1)?]);
        let found = if kind == TYPE_A { self.addresses(&labels.join(".")) } else { Vec::new() };
        // The same id and question, then one record per address: name pointer, type A, class IN, TTL 0, four bytes.
        let mut answer = question[..2].to_vec();
        answer.extend([0x81, 0x80, 0, 1, 0, found.len() as u8, 0, 0, 0, 0]);
        answer.extend(&question[12..offset + 4]);
        for address in found {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
            answer.extend(address.octets());
        }
        Some(answer)
    }
}
