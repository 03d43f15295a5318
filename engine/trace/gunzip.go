package trace

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
)

// errAfterData is what comes behind the compressed data of a file and is neither more of them nor padding.
var errAfterData = errors.New("the compressed data are followed by something that is not compressed")

// gunzip reads a file of compressed members one after the other, which may be padded with zeros as those on tapes are.
type gunzip struct {
	from   *bufio.Reader
	member *gzip.Reader
}

func newGunzip(from *bufio.Reader) (*gunzip, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gunzip{from, z}, nil
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.member.Read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if err != io.EOF {
			return 0, err
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

// next moves to the next member.
func (g *gunzip) next() error {
	for {
		c, err := g.from.ReadByte()
		switch {
		case err != nil:
			return err
		case c == 0:
			continue
		case c != 0x1f:
			return errAfterData
		}
		if err := g.from.UnreadByte(); err != nil {
			return err
		}
		if magic, _ := g.from.Peek(2); len(magic) < 2 || magic[1] != 0x8b {
			return errAfterData
		}
		if err := g.member.Reset(g.from); err != nil {
			return err
		}
		g.member.Multistream(false)
		return nil
	}
}
