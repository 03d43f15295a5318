package requestplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
)

// Control is the header of a request: who asks, and where the answer goes.
type Control struct {
	ID             string          `json:"id"`
	RequestType    string          `json:"request_type"`
	ResponseType   string          `json:"response_type"`
	PayloadCodec   *string         `json:"payload_codec"` // nil: JSON
	ConnectionInfo *ConnectionInfo `json:"connection_info"`
	Home           *CallHome       `json:"-"` // out of ConnectionInfo
}

// ConnectionInfo names the transport of the answer. Info is a JSON document of that transport.
type ConnectionInfo struct {
	Transport string `json:"transport"`
	Info      string `json:"info"`
}

// CallHome says where the answer to a request is expected.
type CallHome struct {
	Address    string `json:"address"` // ip:port
	Subject    string `json:"subject"` // names the request on that connection
	Context    string `json:"context"` // the request's id
	StreamType string `json:"stream_type"`
}

const (
	transportTCP   = "tcp_server"
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
	home, homeErr := c.ConnectionInfo.callHome()
	if homeErr != nil {
		return c, errors.Join(err, homeErr)
	}
	c.Home = &home
	if err == nil {
		err = c.check()
	}
	return c, err
}

func (i *ConnectionInfo) callHome() (CallHome, error) {
	var home CallHome
	if i == nil {
		return home, errors.New("control message: connection_info is missing")
	}
	if i.Transport != transportTCP {
		return home, fmt.Errorf("control message: transport must be %s, got %q", transportTCP, i.Transport)
	}
	if err := json.Unmarshal([]byte(i.Info), &home); err != nil {
		return home, fmt.Errorf("control message: connection info: %w", err)
	}
	if _, err := netip.ParseAddrPort(home.Address); err != nil {
		return home, fmt.Errorf("control message: return address must be ip:port, got %q", home.Address)
	}
	return home, nil
}

func (c *Control) check() error {
	switch {
	case c.ID == "":
		return errors.New("control message: id is missing")
	case c.RequestType != "single_in" && c.RequestType != "many_in":
		return fmt.Errorf("control message: request_type must be single_in or many_in, got %q", c.RequestType)
	case c.ResponseType != "many_out" && c.ResponseType != "single_out":
		return fmt.Errorf("control message: response_type must be many_out or single_out, got %q", c.ResponseType)
	case c.Home.Context != c.ID:
		return fmt.Errorf("control message: the return address belongs to request %q, not to %q", c.Home.Context, c.ID)
	case c.Home.StreamType != streamResponse:
		return fmt.Errorf("control message: stream_type must be %s, got %q", streamResponse, c.Home.StreamType)
	}
	_, err := c.Codec()
	return err
}

// Codec returns the form of the request's body and of the answer's frames.
func (c *Control) Codec() (Codec, error) {
	if c.PayloadCodec == nil {
		return JSON, nil
	}
	return ParseCodec(*c.PayloadCodec)
}
