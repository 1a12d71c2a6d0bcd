package faultdriver

import "net"

// Conn is a connection whose reads and writes go through functions, if they are set.
// The functions get the inner connection's method.
type Conn struct {
	net.Conn
	OnRead  func(b []byte, read func(b []byte) (int, error)) (int, error)
	OnWrite func(b []byte, write func(b []byte) (int, error)) (int, error)
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if c.OnRead == nil {
		return c.Conn.Read(b)
	}
	return c.OnRead(b, c.Conn.Read)
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	if c.OnWrite == nil {
		return c.Conn.Write(b)
	}
	return c.OnWrite(b, c.Conn.Write)
}
