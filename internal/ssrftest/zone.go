package ssrftest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// Zone answers the queries of a name server that lives in this process (RFC 1035).
// Its fields are set before the first query.
type Zone struct {
	// Answers has the addresses for each successive lookup of a name; the last ones
	// repeat. Both families are in one list. An empty list is an answer without
	// addresses. A name that is missing here does not exist.
	Answers map[string][][]netip.Addr
	// Alias are CNAMEs. They may form a chain.
	Alias map[string]string
	// Broken are names whose queries are all answered with SERVFAIL.
	Broken map[string]bool
	// Otherwise has the addresses of all names that are not in Answers. If it is
	// empty these names do not exist.
	Otherwise []netip.Addr
	// Silent are names whose queries are not answered at all.
	Silent map[string]bool

	mu    sync.Mutex
	asked map[string]int // lookups of IPv4 addresses so far
}

// Addresses parses the addresses of a name.
func Addresses(texts ...string) []netip.Addr {
	list := make([]netip.Addr, len(texts))
	for i, s := range texts {
		list[i] = netip.MustParseAddr(s)
	}
	return list
}

const (
	typeA     = 1
	typeCNAME = 5
	typeAAAA  = 28

	serverFailure = 2
	nameError     = 3
	truncated     = 0x02

	// maxDatagram bounds an answer by UDP (RFC 1035 section 4.2.1). A longer one is
	// truncated to nothing, and the resolver asks again by TCP.
	maxDatagram = 512
)

// Resolver returns the Go resolver with every query sent to the zone, over pipes
// that are framed as DNS over TCP is (RFC 1035 section 4.2.2).
func (z *Zone) Resolver() *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go z.serve(server)
			return client, nil
		},
	}
}

// Listen serves the zone on an address, by UDP and by TCP, until the test ends.
func (z *Zone) Listen(t testing.TB, address string) {
	t.Helper()
	udp, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", address)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		_ = udp.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = udp.Close()
		_ = tcp.Close()
	})
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			answer, ok := z.answer(buf[:n])
			if len(answer) > maxDatagram {
				answer = answer[:12+len(questionOf(answer))]
				answer[2] |= truncated
				answer[7] = 0
				answer[6] = 0
			}
			if ok {
				_, _ = udp.WriteTo(answer, from)
			}
		}
	}()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			go z.serve(conn)
		}
	}()
}

func (z *Zone) serve(c net.Conn) {
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
		answer, ok := z.answer(query)
		if !ok {
			continue
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// questionOf returns the one question of a message, with its type and class.
func questionOf(message []byte) []byte {
	at := 12
	for message[at] != 0 {
		at += 1 + int(message[at])
	}
	return message[12 : at+5]
}

// answer returns the answer to a resolver's query, or nil for none.
func (z *Zone) answer(query []byte) (message []byte, ok bool) {
	question := questionOf(query)
	kind := binary.BigEndian.Uint16(question[len(question)-4:])
	var labels []string
	for at := 0; question[at] != 0; at += 1 + int(question[at]) {
		labels = append(labels, string(question[at+1:at+1+int(question[at])]))
	}
	name := strings.ToLower(strings.Join(labels, "."))
	if z.Silent[name] {
		return nil, false
	}

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
	for to, ok := z.Alias[name]; ok; to, ok = z.Alias[name] {
		encoded := encode(to)
		record(owner, typeCNAME, encoded)
		owner, name = encoded, to
	}
	addresses, err := z.lookup(name, kind)
	for _, a := range addresses {
		switch {
		case a.Is4() && kind == typeA:
			record(owner, typeA, a.AsSlice())
		case a.Is6() && kind == typeAAAA:
			record(owner, typeAAAA, a.AsSlice())
		}
	}
	code := byte(0)
	switch {
	case z.Broken[name]:
		code = serverFailure
	case err != nil:
		code = nameError
	}
	header := []byte{query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(header[6:], uint16(count))
	return append(append(header, question...), records...), true
}

func encode(name string) []byte {
	var encoded []byte
	for label := range strings.SplitSeq(name, ".") {
		encoded = append(append(encoded, byte(len(label))), label...)
	}
	return append(encoded, 0)
}

var errNoName = errors.New("there is no such name")

// lookup counts the lookups of a name by the queries for IPv4 addresses: each lookup
// makes one. The queries for IPv6 addresses run beside them, so a name whose answers
// change must not have both.
func (z *Zone) lookup(name string, kind uint16) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	rounds, known := z.Answers[name]
	if !known && z.Otherwise != nil {
		return z.Otherwise, nil
	}
	if !known {
		return nil, errNoName
	}
	n := min(z.asked[name], len(rounds)-1)
	if kind == typeA {
		if z.asked == nil {
			z.asked = map[string]int{}
		}
		z.asked[name]++
	}
	return rounds[n], nil
}
