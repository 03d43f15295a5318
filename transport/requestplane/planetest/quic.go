package planetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/quic-go/quic-go"

	"mockbench/engine/spawn"
	"mockbench/transport/requestplane/quicline"
)

// QUICFrontend is a listener for answers over QUIC. It confirms every registration.
type QUICFrontend struct {
	t           testing.TB
	listener    *quic.Listener
	id          uuid.UUID
	fingerprint string
	frames      chan QUICFrame

	mu    sync.Mutex
	conns map[*quic.Conn]int // and their streams
}

// QUICFrame is a frame of a worker and the lane it came on.
type QUICFrame struct {
	Kind    quicline.Kind
	ID      uuid.UUID
	Payload []byte
	conn    *quic.Conn
	stream  *quic.Stream
}

// NewQUIC starts a frontend that ends with the test.
func NewQUIC(t testing.TB) *QUICFrontend {
	t.Helper()
	certificate := selfSigned(t)
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	transport := &quic.Transport{Conn: socket}
	l, err := transport.Listen(&tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"dynamo-response-v2"},
		Certificates: []tls.Certificate{certificate}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(certificate.Certificate[0])
	f := &QUICFrontend{t: t, listener: l, id: uuid.New(), fingerprint: hex.EncodeToString(sum[:]),
		frames: make(chan QUICFrame, 4096), conns: map[*quic.Conn]int{}}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		f.Drop()
		transport.Close()
		socket.Close()
		stop()
	})
	spawn.Go("accept", func() {
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				return
			}
			spawn.Go("connection", func() { f.serve(ctx, c) })
		}
	})
	return f
}

func selfSigned(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Home returns the address of the answer to a request.
func (f *QUICFrontend) Home(id string) quicline.Home {
	return quicline.Home{Version: 3, Address: f.listener.Addr().String(), Frontend: f.id, Registration: uuid.New(), RequestID: id,
		Certificate: f.fingerprint}
}

// Control returns the control message of a request.
func (f *QUICFrontend) Control(id string) []byte {
	info, _ := json.Marshal(f.Home(id))
	control, _ := json.Marshal(map[string]any{"id": id, "request_type": "single_in", "response_type": "many_out",
		"payload_codec": "msgpack", "connection_info": map[string]string{"transport": "quic-response", "info": string(info)}})
	return control
}

func (f *QUICFrontend) serve(ctx context.Context, c *quic.Conn) {
	f.mu.Lock()
	f.conns[c] = 0
	f.mu.Unlock()
	for {
		stream, err := c.AcceptStream(ctx)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[c]++
		f.mu.Unlock()
		spawn.Go("stream", func() { f.read(c, stream) })
	}
}

func (f *QUICFrontend) read(c *quic.Conn, stream *quic.Stream) {
	for {
		var head [21]byte
		if _, err := io.ReadFull(stream, head[:]); err != nil {
			return
		}
		frame := QUICFrame{Kind: quicline.Kind(head[0]), ID: uuid.UUID(head[1:17]), conn: c, stream: stream,
			Payload: make([]byte, binary.BigEndian.Uint32(head[17:]))}
		if _, err := io.ReadFull(stream, frame.Payload); err != nil {
			return
		}
		if frame.Kind == quicline.Register {
			_, _ = stream.Write(quicline.AppendFrame(nil, quicline.Registered, frame.ID, nil))
		}
		f.frames <- frame
	}
}

// Next returns the next frame that is not the first of a lane.
func (f *QUICFrontend) Next() QUICFrame {
	f.t.Helper()
	for {
		select {
		case frame := <-f.frames:
			if frame.Kind != quicline.Bundle {
				return frame
			}
		case <-time.After(Patience):
			f.t.Fatal("no frame")
		}
	}
}

// Expect fails the test unless the next frame has the kind, and returns it.
func (f *QUICFrontend) Expect(kind quicline.Kind) QUICFrame {
	f.t.Helper()
	frame := f.Next()
	if frame.Kind != kind {
		f.t.Errorf("got a frame of kind %d with %q, want kind %d", frame.Kind, frame.Payload, kind)
	}
	return frame
}

// Say writes a frame on the lane of another, with its id.
func (f *QUICFrontend) Say(kind quicline.Kind, like QUICFrame) {
	_, _ = like.stream.Write(quicline.AppendFrame(nil, kind, like.ID, nil))
}

// Streams returns the number of streams of each connection.
func (f *QUICFrontend) Streams() (list []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.conns {
		list = append(list, n)
	}
	return list
}

// Priority reports whether a frame came on a lane that shares its connection with others.
func (f *QUICFrontend) Priority(frame QUICFrame) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[frame.conn] > 1
}

// Drop closes all connections.
func (f *QUICFrontend) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.CloseWithError(0, "")
	}
	clear(f.conns)
}
