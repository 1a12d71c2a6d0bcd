// Package porttest gives tests ports of loopback that are theirs. A port that was chosen
// and let go can be anybody's by the time that it is listened on, or called, since other
// processes are given ports meanwhile. A port that is held here is bound, and nobody
// listens there: it refuses connections, and the system gives it to nobody else.
//
// Where a fixed address will do that refuses connections, 127.0.0.1:1 is one: no system
// gives that port to who asks for any.
package porttest
