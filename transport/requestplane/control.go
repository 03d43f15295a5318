package requestplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"mockbench/transport/requestplane/quicline"
)

// Control is the header of a request: who asks, and where the answer goes.
type Control struct {
	ID             string          `json:"id"`
	RequestType    string          `json:"request_type"`
	ResponseType   string          `json:"response_type"`
	PayloadCodec   *string         `json:"payload_codec"` // nil: JSON
	ConnectionInfo *ConnectionInfo `json:"connection_info"`
	Home           Home            `json:"-"` // out of ConnectionInfo
}

// ConnectionInfo names the transport of the answer. Info is a JSON document of that transport.
type ConnectionInfo struct {
	Transport string `json:"transport"`
	Info      string `json:"info"`
}

// ResponsePlane is how answers travel. Frontends and workers have to agree on it.
type ResponsePlane string

// The response planes.
const (
	TCP  ResponsePlane = "tcp"
	QUIC ResponsePlane = "quic"
)

// Home is where an answer is expected: a *CallHome, or the same for the other response plane.
type Home interface {
	// open connects to the frontend. The frontend's word that it wants no more goes to s.giveUp.
	open(d *Dispatcher, s *Stream) (line, error)

	// check compares the address with the request that carries it.
	check(id string) error

	plane() ResponsePlane
}

// CallHome is the address of an answer that travels over TCP.
type CallHome struct {
	Address    string `json:"address"` // ip:port
	Subject    string `json:"subject"` // names the request on that connection
	Context    string `json:"context"` // the request's id
	StreamType string `json:"stream_type"`
}

const (
	transportTCP   = "tcp_server"
	transportQUIC  = "quic-response"
	streamResponse = "response"
)

// ParseControl reads a control message. Home is set whenever there is somewhere to send an error to, whatever else is
// wrong with the message.
func ParseControl(message []byte) (Control, error) {
	var c Control
	err := json.Unmarshal(message, &c) // goes on after a field of the wrong type
	if err != nil {
		err = fmt.Errorf("control message: %w", err)
	}
	home, homeErr := c.ConnectionInfo.home()
	if homeErr != nil {
		return c, errors.Join(err, homeErr)
	}
	c.Home = home
	if err == nil {
		err = c.check()
	}
	return c, err
}

func (i *ConnectionInfo) home() (Home, error) {
	if i == nil {
		return nil, errors.New("control message: connection_info is missing")
	}
	switch i.Transport {
	case transportTCP:
		return parseCallHome(i.Info)
	case transportQUIC:
		h, err := quicline.ParseHome(i.Info)
		if err != nil {
			return nil, err
		}
		return &quicHome{h}, nil
	}
	return nil, fmt.Errorf("control message: transport must be %s or %s, got %q", transportTCP, transportQUIC, i.Transport)
}

func parseCallHome(info string) (Home, error) {
	var home CallHome
	if err := json.Unmarshal([]byte(info), &home); err != nil {
		return nil, fmt.Errorf("control message: connection info: %w", err)
	}
	if _, err := netip.ParseAddrPort(home.Address); err != nil {
		return nil, fmt.Errorf("control message: return address must be ip:port, got %q", home.Address)
	}
	return &home, nil
}

func (c *Control) check() error {
	switch {
	case c.ID == "":
		return errors.New("control message: id is missing")
	case c.RequestType != "single_in" && c.RequestType != "many_in":
		return fmt.Errorf("control message: request_type must be single_in or many_in, got %q", c.RequestType)
	case c.ResponseType != "many_out" && c.ResponseType != "single_out":
		return fmt.Errorf("control message: response_type must be many_out or single_out, got %q", c.ResponseType)
	}
	if err := c.Home.check(c.ID); err != nil {
		return err
	}
	_, err := c.Codec()
	return err
}

// belongs returns an error if a return address was made for another request.
func belongs(id, to string) error {
	if id != to {
		return fmt.Errorf("control message: the return address belongs to request %q, not to %q", to, id)
	}
	return nil
}

func (h *CallHome) check(id string) error {
	if h.StreamType != streamResponse {
		return fmt.Errorf("control message: stream_type must be %s, got %q", streamResponse, h.StreamType)
	}
	return belongs(id, h.Context)
}

func (*CallHome) plane() ResponsePlane { return TCP }

// Codec returns the form of the request's body and of the answer's frames.
func (c *Control) Codec() (Codec, error) {
	if c.PayloadCodec == nil {
		return JSON, nil
	}
	return ParseCodec(*c.PayloadCodec)
}
