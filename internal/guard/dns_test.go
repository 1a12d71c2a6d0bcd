package guard_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// zone answers the queries of a name server that lives in this process.
type zone struct {
	mu sync.Mutex
	// answers are the addresses of each successive lookup of a name; the last
	// ones repeat. Both families are in one list.
	answers map[string][][]netip.Addr
	alias   map[string]string // CNAMEs
	asked   map[string]int    // lookups of IPv4 addresses so far
}

const (
	typeA     = 1
	typeCNAME = 5
	typeAAAA  = 28
)

// resolver returns the Go resolver with every query sent to the zone, over pipes
// that are framed as DNS over TCP is (RFC 1035 section 4.2.2).
func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go z.serve(server)
			return client, nil
		},
	}
}

func (z *zone) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		answer := z.answer(query)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func (z *zone) answer(query []byte) []byte {
	var labels []string
	at := 12
	for query[at] != 0 {
		labels = append(labels, string(query[at+1:at+1+int(query[at])]))
		at += 1 + int(query[at])
	}
	question := query[12 : at+5]
	kind := binary.BigEndian.Uint16(query[at+1:])
	name := strings.ToLower(strings.Join(labels, "."))

	var records []byte
	count := 0
	record := func(owner []byte, kind uint16, data []byte) {
		records = append(records, owner...)
		records = binary.BigEndian.AppendUint16(records, kind)
		records = append(records, 0, 1, 0, 0, 0, 0) // class IN, time to live 0
		records = binary.BigEndian.AppendUint16(records, uint16(len(data)))
		records = append(records, data...)
		count++
	}
	owner := []byte{0xc0, 12} // the question's name
	if to, ok := z.alias[name]; ok {
		var encoded []byte
		for label := range strings.SplitSeq(to, ".") {
			encoded = append(append(encoded, byte(len(label))), label...)
		}
		encoded = append(encoded, 0)
		record(owner, typeCNAME, encoded)
		owner, name = encoded, to
	}
	addresses, known := z.lookup(name, kind)
	for _, a := range addresses {
		switch {
		case a.Is4() && kind == typeA:
			record(owner, typeA, a.AsSlice())
		case a.Is6() && kind == typeAAAA:
			record(owner, typeAAAA, a.AsSlice())
		}
	}
	code := byte(0)
	if !known {
		code = 3 // NXDOMAIN
	}
	header := []byte{query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, byte(count), 0, 0, 0, 0}
	return append(append(header, question...), records...)
}

// lookup counts by queries for IPv4 addresses, of which each lookup makes one;
// those for IPv6 addresses run beside them, so a name that changes its answers
// must not have both.
func (z *zone) lookup(name string, kind uint16) ([]netip.Addr, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	rounds, known := z.answers[name]
	if !known {
		return nil, false
	}
	n := min(z.asked[name], len(rounds)-1)
	if kind == typeA {
		if z.asked == nil {
			z.asked = map[string]int{}
		}
		z.asked[name]++
	}
	return rounds[n], true
}
