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
