use std::fmt;
use std::net::IpAddr;

/// The addresses that begin with the same bits: `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// Its first address: beyond the prefix all bits are zero. Never an IPv4 address spelt as IPv6.
    pub address: IpAddr,
    /// How many bits its addresses have in common: up to 32 for IPv4, up to 128 for IPv6.
    pub prefix: u8,
}

impl Network {
    /// The network of that many bits in which an address lies. An IPv4 address spelt as IPv6 is the IPv4
    /// address, and a prefix longer than the address is the address itself.
    #[must_use]
    pub fn of(address: IpAddr, prefix: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let prefix = prefix.min(32);
                let bits = address.to_bits() & u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                Self { address: IpAddr::V4(bits.into()), prefix }
            }
            IpAddr::V6(address) => {
                let prefix = prefix.min(128);
                let bits = address.to_bits() & u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                Self { address: IpAddr::V6(bits.into()), prefix }
            }
        }
    }

    /// Whether an address lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::of(address, self.prefix) == *self
    }

    /// Whether it is one address.
    #[must_use]
    pub const fn is_single(&self) -> bool {
        self.prefix == if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// Whether every address of its family lies in it.
    #[must_use]
    pub const fn is_everybody(&self) -> bool {
        self.prefix == 0
    }
}

/// What translators put before the IPv4 addresses whose packets they bring into an IPv6 network (RFC 6052 §2.1).
const NAT64: u128 = 0x0064_ff9b << 96;

/// The IPv4 address inside of an IPv6 one, where there is one: mapped, or translated. Everybody behind a translator
/// would otherwise be one caller, or each of them as many as it likes.
#[must_use]
pub fn inside(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if address.to_bits() >> 32 == NAT64 >> 32 => {
            let [.., a, b, c, d] = address.octets();
            IpAddr::from([a, b, c, d])
        }
        address => address,
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str, prefix: u8) -> Network {
        Network::of(address.parse().unwrap(), prefix)
    }

    #[test]
    fn an_ipv4_address_is_found_inside_of_ipv6_ones() {
        for (written, found) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("64:ff9b::192.0.2.1", "192.0.2.1"),
            ("64:ff9b:1::192.0.2.1", "64:ff9b:1::c000:201"),
            ("64:ff9b::1:192.0.2.1", "64:ff9b::1:c000:201"),
            ("::192.0.2.1", "::c000:201"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(inside(written.parse().unwrap()).to_string(), found, "{written}");
        }
    }

    #[test]
    fn a_network_holds_the_addresses_that_share_its_prefix() {
        let contains = |network: Network, address: &str| network.contains(address.parse().unwrap());
        let ten = network("10.0.0.0", 8);
        assert!(contains(ten, "10.255.0.1"));
        assert!(!contains(ten, "11.0.0.1"));
        assert!(contains(ten, "::ffff:10.1.2.3"), "IPv4 spelt as IPv6");
        assert!(!contains(ten, "a00::1"), "the same bits, another family");
        assert!(contains(network("2001:db8::", 33), "2001:db8:7fff::1"));
        assert!(!contains(network("2001:db8::", 33), "2001:db8:8000::1"));
        assert!(contains(network("192.0.2.1", 32), "192.0.2.1"));
        assert!(!contains(network("192.0.2.1", 32), "192.0.2.2"));
        assert!(contains(network("::", 0), "2001:db8::1"));
        assert!(!contains(network("::", 0), "192.0.2.1"), "IPv4 is not in it");
    }
}
