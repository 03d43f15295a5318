package requestplane

import (
	"strconv"
	"strings"
)

// Name identifies one endpoint of one worker.
type Name struct {
	Namespace, Component, Endpoint string
	Instance                       uint64
}

var pathEscaper = strings.NewReplacer("%", "%25", "/", "%2F")

// Path returns the text by which request frames name the endpoint.
func (n Name) Path() string {
	return strings.Join([]string{n.InstanceHex(), pathEscaper.Replace(n.Namespace), pathEscaper.Replace(n.Component),
		pathEscaper.Replace(n.Endpoint)}, "/")
}

// InstanceHex returns the instance id as keys, paths and metric labels spell it.
func (n Name) InstanceHex() string { return strconv.FormatUint(n.Instance, 16) }

// Service returns the name under which the endpoints of a component are known to a NATS server.
func (n Name) Service() string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, n.Namespace+"_"+n.Component)
	return strings.TrimLeft(slug, "_")
}

// Subject returns the subject of requests for the endpoint on a NATS server.
func (n Name) Subject() string { return n.Service() + "." + n.Endpoint + "-" + n.InstanceHex() }
