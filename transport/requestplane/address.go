package requestplane

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ResolveHost turns a host setting into the address to listen on and the address to tell others. host is an address, an
// address in brackets, a wildcard address, or the name of a network interface; empty means the address by which the
// machine reaches others. The advertised address is never a wildcard.
func ResolveHost(host string) (bind, advertise netip.Addr, err error) {
	host = strings.TrimSpace(host)
	if host == "" {
		a := outward()
		return a, a, nil
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if err != nil {
		a, err = interfaceAddress(host)
		return a, a, err
	}
	if !a.IsUnspecified() {
		return a, a, nil
	}
	if reachable, ok := preferred(localAddresses(), a.Is4()); ok {
		return a, reachable, nil
	}
	if a.Is4() {
		return a, netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	return a, netip.IPv6Loopback(), nil
}

// outward returns the source address of the default route if an interface carries it, else the first address that is
// not of the loopback, IPv4 before IPv6, else the loopback.
func outward() netip.Addr {
	local := localAddresses()
	if a, ok := routeSource(); ok {
		for _, l := range local {
			if l == a {
				return a
			}
		}
	}
	for _, v4 := range []bool{true, false} {
		if a, ok := preferred(local, v4); ok {
			return a
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// routeSource asks the system which source address it would use for a public address. Nothing is sent.
func routeSource() (netip.Addr, bool) {
	c, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return netip.Addr{}, false
	}
	defer c.Close()
	a, err := netip.ParseAddrPort(c.LocalAddr().String())
	return a.Addr(), err == nil
}

// localAddresses returns the usable addresses of interfaces that are up, loopback and link-local ones excepted.
func localAddresses() []netip.Addr {
	var list []netip.Addr
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp != 0 {
			list = append(list, addressesOf(i)...)
		}
	}
	return list
}

func addressesOf(i net.Interface) []netip.Addr {
	var list []netip.Addr
	addrs, err := i.Addrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if a := prefix.Addr().Unmap(); !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() {
			list = append(list, a)
		}
	}
	return list
}

func preferred(list []netip.Addr, v4 bool) (netip.Addr, bool) {
	for _, a := range list {
		if a.Is4() == v4 {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// interfaceAddress returns the first address of a named interface, IPv4 before IPv6.
func interfaceAddress(name string) (netip.Addr, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("request plane host: %q is neither an address nor a network interface", name)
	}
	list := addressesOf(*i)
	for _, v4 := range []bool{true, false} {
		if a, ok := preferred(list, v4); ok {
			return a, nil
		}
	}
	if i.Flags&net.FlagLoopback != 0 {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	return netip.Addr{}, fmt.Errorf("request plane host: interface %s has no usable address", name)
}
