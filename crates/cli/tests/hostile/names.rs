//! A name server of the attacker's own: its answers change when it pleases, and are never to be kept.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use tokio::net::UdpSocket;

/// What a name is answered with.
#[derive(Clone)]
pub(crate) enum Answer {
    /// All of these, every time.
    All(Vec<Ipv4Addr>),
    /// One after the other, in turn.
    InTurn(Vec<Ipv4Addr>, usize),
}

#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<String, Answer>>>);

const ADDRESS: u16 = 1;

impl Names {
    /// Answers on the usual port of this network, which must be our own.
    pub(crate) async fn start() -> Self {
        let names = Self::default();
        let socket = UdpSocket::bind("127.0.0.1:53").await.expect("the port for names");
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
            Some(Answer::InTurn(all, asked)) => {
                *asked += 1;
                vec![all[(*asked - 1) % all.len()]]
            }
            None => Vec::new(),
        }
    }

    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let (mut at, mut labels) = (12, Vec::new());
        loop {
            let length = usize::from(*question.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(question.get(at..at + length)?).to_ascii_lowercase());
            at += length;
        }
        let kind = u16::from_be_bytes([*question.get(at)?, *question.get(at + 1)?]);
        let found = if kind == ADDRESS { self.addresses(&labels.join(".")) } else { Vec::new() };
        // The same id and question, then each address: name as above, type A, class IN, not to be kept, four bytes.
        let mut answer = question[..2].to_vec();
        answer.extend([0x81, 0x80, 0, 1, 0, found.len() as u8, 0, 0, 0, 0]);
        answer.extend(&question[12..at + 4]);
        for address in found {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
            answer.extend(address.octets());
        }
        Some(answer)
    }
}
