package endpoint

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// metadata lists the addresses at which clouds serve credentials, besides the link-local ones.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"),    // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),      // Azure, the wire server
	netip.MustParseAddr("192.0.0.192"),        // Oracle Cloud, Classic
	netip.MustParseAddr("fd00:ec2::254"),      // AWS, instances
	netip.MustParseAddr("fd00:ec2::23"),       // AWS, EKS Pod Identity
	netip.MustParseAddr("fd20:ce::254"),       // Google Cloud
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"), // Oracle Cloud
	netip.MustParseAddr("fd00:42::42"),        // Scaleway
	netip.MustParseAddr("fd00:a9fe:a9fe::1"),  // Akamai
}

// Guard refuses to connect to link-local addresses, and to those at which clouds serve credentials.
// Use it as the Control function of a [net.Dialer], which calls it after a name has been resolved.
func Guard(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s is no address of a hook: %w", address, err)
	}
	return Refuse(at.Addr())
}

// Refuse returns an error for an address that [Guard] would refuse. Use it for an address that
// something else dials, such as a proxy. It also refuses an IPv6 address that a translator or a tunnel
// maps to a forbidden IPv4 address.
func Refuse(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if slices.ContainsFunc(append(embedded(ip), ip), forbidden) {
		return fmt.Errorf("%s is a link-local or metadata address; a hook may not be there", ip)
	}
	return nil
}

func forbidden(ip netip.Addr) bool {
	return ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || slices.Contains(metadata, ip)
}

// embedding describes IPv6 addresses that contain an IPv4 address: their prefix, and the positions of
// the four bytes.
type embedding struct {
	prefix   netip.Prefix
	at       [4]int
	inverted bool
}

var embeddings = []embedding{
	// IPv4-compatible (RFC 4291)
	{prefix: netip.MustParsePrefix("::/96"), at: [4]int{12, 13, 14, 15}},
	// IPv4-translated (RFC 2765)
	{prefix: netip.MustParsePrefix("::ffff:0:0:0/96"), at: [4]int{12, 13, 14, 15}},
	{prefix: netip.MustParsePrefix("64:ff9b::/96"), at: [4]int{12, 13, 14, 15}}, // NAT64 (RFC 6052)
	// NAT64 of a network (RFC 8215), as a prefix of 48 bits
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), at: [4]int{6, 7, 9, 10}},
	// the same, as one of 96 bits
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), at: [4]int{12, 13, 14, 15}},
	{prefix: netip.MustParsePrefix("2002::/16"), at: [4]int{2, 3, 4, 5}},                     // 6to4 (RFC 3056)
	{prefix: netip.MustParsePrefix("2001::/32"), at: [4]int{12, 13, 14, 15}, inverted: true}, // Teredo (RFC 4380)
}

// embedded returns the IPv4 addresses that an IPv6 address may map to.
func embedded(ip netip.Addr) []netip.Addr {
	if !ip.Is6() {
		return nil
	}
	var out []netip.Addr
	bytes := ip.As16()
	for _, e := range embeddings {
		if !e.prefix.Contains(ip) {
			continue
		}
		var v4 [4]byte
		for i, at := range e.at {
			v4[i] = bytes[at]
			if e.inverted {
				v4[i] = ^v4[i]
			}
		}
		out = append(out, netip.AddrFrom4(v4))
	}
	if bytes[8]&^2 == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe { // ISATAP (RFC 5214)
		out = append(out, netip.AddrFrom4([4]byte(bytes[12:])))
	}
	return out
}
