// Package porttest gives tests ports of loopback that no other process gets. If a test
// chooses a port and lets it go, another process may have it by the time that the test
// listens there, or calls it. A port that is held here is bound, and nobody listens
// there: it refuses connections, and the system gives it to nobody else.
//
// If a fixed address that refuses connections is enough, use 127.0.0.1:1: no system
// assigns that port.
package porttest
