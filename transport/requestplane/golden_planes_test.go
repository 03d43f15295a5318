package requestplane

import (
	"encoding/hex"
	"testing"

	"github.com/google/uuid"

	"mockbench/transport/goldencase"
	"mockbench/transport/requestplane/quicline"
)

func checkLane(t *testing.T, c goldencase.Case) {
	var in struct {
		ID string `json:"request_id"`
	}
	var want struct{ Lane int }
	parse(t, c, &in, &want)
	if got := quicline.Lane(in.ID); got != want.Lane {
		t.Errorf("lane %d, want %d", got, want.Lane)
	}
}

func checkQUICFrame(t *testing.T, c goldencase.Case) {
	var in struct {
		Kind    quicline.Kind
		ID      uuid.UUID
		Payload string
	}
	var want struct{ Hex string }
	parse(t, c, &in, &want)
	if got := hex.EncodeToString(quicline.AppendFrame(nil, in.Kind, in.ID, []byte(in.Payload))); got != want.Hex {
		t.Errorf("got %s, want %s", got, want.Hex)
	}
}

func checkSubject(t *testing.T, c goldencase.Case) {
	var in struct {
		Namespace, Component, Endpoint string
		Instance                       uint64 `json:"instance_id"`
	}
	var want struct {
		Service, Subject string
		Transport        struct {
			NATS string `json:"nats_tcp"`
		} `json:"discovery_transport"`
	}
	parse(t, c, &in, &want)
	if got := Name(in).Service(); got != want.Service {
		t.Errorf("service %s, want %s", got, want.Service)
	}
	if got := Name(in).Subject(); got != want.Subject || got != want.Transport.NATS {
		t.Errorf("subject %s, want %s and %s", got, want.Subject, want.Transport.NATS)
	}
}
