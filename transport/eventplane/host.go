package eventplane

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// HostVariable is the environment variable that overrides the advertised address.
const HostVariable = "DYN_EVENT_PLANE_HOST"

// AdvertisedIP returns the address under which other machines reach this one: setting if it is not blank (an address
// or the name of an interface), else the source address of the default route, else the first address of an interface
// that is up, IPv4 before IPv6. Without any, it returns loopback and ok is false.
func AdvertisedIP(setting string) (ip netip.Addr, ok bool, err error) {
	if setting = strings.TrimSpace(setting); setting != "" {
		ip, err = configuredIP(setting)
		return ip, err == nil, err
	}
	for _, destination := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		if ip, ok := routeSource(destination); ok && ip.IsGlobalUnicast() {
			return ip, true, nil
		}
	}
	var addresses []net.Addr
	interfaces, _ := net.Interfaces() // none is the same as not knowing
	for _, i := range interfaces {
		if i.Flags&net.FlagUp != 0 {
			a, _ := i.Addrs()
			addresses = append(addresses, a...)
		}
	}
	if ip, ok := firstIP(addresses, netip.Addr.IsGlobalUnicast); ok {
		return ip, true, nil
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), false, nil
}

func configuredIP(setting string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(setting); err == nil {
		if ip.IsUnspecified() {
			return netip.Addr{}, fmt.Errorf("%s: %q cannot be advertised, must be an address others can reach", HostVariable, setting)
		}
		return ip, nil
	}
	i, err := net.InterfaceByName(setting)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%s: %q is neither an IP address nor a network interface", HostVariable, setting)
	}
	addresses, _ := i.Addrs()
	if ip, ok := firstIP(addresses, func(ip netip.Addr) bool { return !ip.IsUnspecified() }); ok {
		return ip, nil
	}
	return netip.Addr{}, fmt.Errorf("%s: interface %q has no IP address", HostVariable, setting)
}

// routeSource asks the system's routing table which own address it would use. Connecting a UDP socket sends nothing.
func routeSource(destination string) (netip.Addr, bool) {
	conn, err := net.Dial("udp", destination)
	if err != nil {
		return netip.Addr{}, false
	}
	defer conn.Close()
	a, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return a.Addr().Unmap(), err == nil
}

// firstIP returns the first usable address, an IPv4 one if there is any.
func firstIP(addresses []net.Addr, usable func(netip.Addr) bool) (first netip.Addr, ok bool) {
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !usable(p.Addr()) {
			continue
		}
		if p.Addr().Is4() {
			return p.Addr(), true
		}
		if !ok {
			first, ok = p.Addr(), true
		}
	}
	return first, ok
}
