package requestplane

import (
	"bytes"
	"encoding/json"

	"mockbench/transport/requestplane/quicline"
)

// quicHome is a return address on the QUIC response plane.
type quicHome struct{ quicline.Home }

// quicLine translates the messages of an answer to frames.
type quicLine struct {
	answer *quicline.Answer
	begun  bool // a data frame was sent
	buffer []byte
}

// open implements home.
func (h *quicHome) open(d *Dispatcher, s *Stream) (line, error) {
	answer, err := d.quic.Open(d.ctx, h.Home, func() { s.giveUp() })
	if err != nil {
		return nil, err
	}
	return &quicLine{answer: answer}, nil
}

func (h *quicHome) check(id string) error { return belongs(id, h.RequestID) }

func (*quicHome) plane() ResponsePlane { return QUIC }

func (l *quicLine) write(messages []byte) error {
	l.buffer = l.buffer[:0] // bulk frames
	for len(messages) > 0 {
		header, body, err := SplitMessage(messages)
		if err != nil {
			return err
		}
		messages = messages[headSize+len(header)+len(body):]
		switch {
		case len(body) > 0 && l.begun:
			l.buffer = quicline.AppendFrame(l.buffer, quicline.Data, l.answer.ID(), body)
		case len(body) > 0:
			l.begun = true
			err = l.priority(quicline.FirstData, body)
		case !bytes.Equal(header, sentinel):
			err = l.prologue(header, &messages)
		case l.begun:
			l.buffer = quicline.AppendFrame(l.buffer, quicline.End, l.answer.ID(), nil)
		default:
			err = l.priority(quicline.PriorityEnd, nil)
		}
		if err != nil {
			return err
		}
	}
	if len(l.buffer) == 0 {
		return nil
	}
	return l.answer.Bulk(l.buffer)
}

func (l *quicLine) priority(kind quicline.Kind, payload []byte) error {
	return l.answer.Priority(quicline.AppendFrame(nil, kind, l.answer.ID(), payload))
}

// typedError is the kind of an error frame that is more than a text.
const typedError = "dynamo.quic.typed_error"

// prologue sends the first word of an answer. A refusal is also the last one, so that what follows it is dropped.
func (l *quicLine) prologue(header []byte, rest *[]byte) error {
	var p struct {
		Error *string         `json:"error"`
		Typed json.RawMessage `json:"typed_error"`
	}
	if err := json.Unmarshal(header, &p); err != nil {
		return err
	}
	if p.Error == nil {
		return l.priority(quicline.Prologue, nil)
	}
	*rest = nil
	if p.Typed == nil {
		return l.priority(quicline.Error, []byte(*p.Error))
	}
	e := Encoder{Codec: JSON}
	e.Map(3)
	encodeText(&e, "kind", typedError)
	encodeText(&e, "error", *p.Error)
	e.Key("typed_error")
	e.Raw(p.Typed)
	e.EndMap()
	return l.priority(quicline.Error, e.Buf)
}

func (l *quicLine) conclude(finished bool) { l.answer.Close(finished) }
