//! Ports for servers that must be told their port before they start.

use std::{
    net::{Ipv4Addr, TcpListener, UdpSocket},
    time::{SystemTime, UNIX_EPOCH},
};

/// A TCP port of the loopback address that no other test uses while this exists. It is below the ports that the system
/// gives to listeners on port 0 and to outgoing connections, so that nothing takes it before its server listens.
#[must_use]
pub struct ReservedPort {
    number: u16,
    /// Keeps other tests away, also those of other processes: a UDP port, which its server does not need.
    _reservation: UdpSocket,
}

impl ReservedPort {
    pub fn new() -> Self {
        const FIRST: u16 = 20_000;
        const COUNT: u16 = 12_000;
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").subsec_nanos();
        let start = (nanos / 1000 % u32::from(COUNT)) as u16;
        (0..COUNT)
            .find_map(|step| Self::try_new(FIRST + (start + step) % COUNT))
            .expect("a port that is not in use")
    }

    fn try_new(number: u16) -> Option<Self> {
        let reservation = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _reservation: reservation })
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}

impl Default for ReservedPort {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_port_is_given_once_and_can_be_listened_on() {
        let reserved = ReservedPort::new();
        assert!(ReservedPort::try_new(reserved.number()).is_none());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, reserved.number())).unwrap();
        let number = reserved.number();
        drop(reserved);
        assert!(ReservedPort::try_new(number).is_none(), "its server listens");
        drop(listener);
    }
}
