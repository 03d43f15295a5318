package eventplane

import (
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"mockbench/transport/zmtp"
)

// Opener makes the publishers of a plane.
type Opener interface {
	// Open makes one publisher.
	Open(topic Topic, id uint64, endpoint Endpoint) (*Publisher, error)

	// BatchesSequences says that several active-sequence events travel in one message.
	BatchesSequences() bool
}

// ZMQ opens publishers with a listening socket each.
type ZMQ struct {
	Host string       // value of DYN_EVENT_PLANE_HOST; blank = find out
	Log  *slog.Logger // nil = no log
}

// Open implements Opener.
func (z ZMQ) Open(topic Topic, id uint64, _ Endpoint) (*Publisher, error) {
	ip, found, err := AdvertisedIP(z.Host)
	if err != nil {
		return nil, err
	}
	if !found && z.Log != nil {
		z.Log.Warn("no reachable address found, events are advertised on loopback; set " + HostVariable)
	}
	any := netip.IPv4Unspecified()
	if ip.Is6() {
		any = netip.IPv6Unspecified()
	}
	socket, err := zmtp.ListenPub(zmtp.Options{Address: netip.AddrPortFrom(any, 0).String(), Log: z.Log})
	if err != nil {
		return nil, err
	}
	endpoint := "tcp://" + netip.AddrPortFrom(ip, port(socket.Addr())).String()
	return newPublisher(topic, id, &zmqOutlet{socket: socket, endpoint: endpoint}), nil
}

// BatchesSequences implements Opener.
func (ZMQ) BatchesSequences() bool { return true }

func newPublisher(topic Topic, id uint64, o outlet) *Publisher {
	return &Publisher{topic: topic, id: id, outlet: o, now: time.Now}
}

// port returns the port of a host:port that a listener reported.
func port(address string) uint16 {
	n, _ := strconv.ParseUint(address[strings.LastIndexByte(address, ':')+1:], 10, 16)
	return uint16(n)
}
