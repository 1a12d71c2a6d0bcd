// Package newid makes identifiers: a prefix and a UUID of version 7 (RFC 9562,
// section 5.7) in 26 characters of base32hex, lower case, without padding
// (RFC 4648, section 7). That alphabet keeps the order of the bytes, so ids sort
// by the time they were made, to the millisecond.
package newid

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"time"
)

var encoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// New returns prefix followed by a new id made at the given time.
func New(prefix string, at time.Time) string {
	var u [16]byte
	binary.BigEndian.PutUint64(u[:8], uint64(at.UnixMilli())<<16)
	_, _ = rand.Read(u[6:]) // crypto/rand.Read never fails: it ends the program if the system has no randomness
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	b := make([]byte, 0, len(prefix)+26)
	b = append(b, prefix...)
	return string(encoding.AppendEncode(b, u[:]))
}

// Of returns prefix followed by an id that follows from texts: the same one each time, and
// another one from other texts.
func Of(prefix string, texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(text))) // a hash takes everything
		_, _ = h.Write([]byte(text))
	}
	return prefix + encoding.EncodeToString(h.Sum(nil)[:16])
}

// Time is when New made an id, to the millisecond; zero if it did not make it.
func Time(id string) time.Time {
	if len(id) < 26 {
		return time.Time{}
	}
	u, err := encoding.DecodeString(id[len(id)-26:])
	if err != nil || len(u) != 16 || u[6]&0xf0 != 0x70 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(u[:8]) >> 16)).UTC() //nolint:gosec // 48 bits
}
