package simulation

import (
	"errors"
	"time"
)

// kind is a kind of fault.
type kind int

const (
	crashAnywhere kind = iota
	crashBefore        // a call of the database
	crashAfter
	failBefore // a call of the database, which has no effect
	failAfter  // with effect: the caller does not know whether it was committed
	slowCall   // others go on meanwhile
	stall      // of a process: its leases may end, and then it goes on
	suspension // likewise, and its clock has stood still
	databaseAway
	networkDown
	lostHint // that something may be due
	rolledBack
	unknownPublish // its producer repeats it,
	crashedPublish // or does not
	refused        // connections
	closedIdle     // a kept one, by its server, as the request is sent on it
	lostRequest
	lostAnswer
	lateAnswer // after the deadline
	brokenBody
	duplicated // by the network: the receiver gets one request twice
	badWeather // of an endpoint: its own faults, for a while
	handlerError
	handlerPanic
	handlerPermanent // the event can never be applied
	lostBegin        // at the receiver's database
	lostCommit
	unknownCommit
	wrongClock      // of a receiver
	brokenConverter // of payload versions, for a while
	operated        // by the operator: not a fault, but it comes at any time
	brokenLink      // to a database that has one: in a call of a dispatcher,
	brokenWork      // in one that records, publishes or receives
	lateCommit      // of a publish, there: others go on while its transaction is open
	kinds
)

// often is the probability of each fault where it can happen, if the seed has it.
var often = [kinds]struct {
	name string
	p    float64
}{
	crashAnywhere:    {"crash", 0.005},
	crashBefore:      {"crash before a call", 0.0008},
	crashAfter:       {"crash after a call", 0.0008},
	failBefore:       {"call failed", 0.01},
	failAfter:        {"call failed after its effect", 0.01},
	slowCall:         {"slow call", 0.01},
	stall:            {"stall", 0.005},
	suspension:       {"suspension", 0.003},
	databaseAway:     {"database away", 0.003},
	networkDown:      {"network down", 0.008},
	lostHint:         {"hint lost", 0.2},
	rolledBack:       {"publish rolled back", 0.05},
	unknownPublish:   {"publish's commit unknown", 0.05},
	crashedPublish:   {"publish given up", 0.02},
	refused:          {"connection refused", 0.03},
	closedIdle:       {"idle connection closed", 0.03},
	lostRequest:      {"request lost", 0.02},
	lostAnswer:       {"answer lost", 0.05},
	lateAnswer:       {"answer late", 0.03},
	brokenBody:       {"answer broken off", 0.01},
	duplicated:       {"request duplicated", 0.03},
	badWeather:       {"endpoint in trouble", 0.005},
	handlerError:     {"handler failed", 0.03},
	handlerPanic:     {"handler panicked", 0.01},
	handlerPermanent: {"handler gave up for good", 0.005},
	lostBegin:        {"receiver's database away", 0.01},
	lostCommit:       {"receiver's commit failed", 0.02},
	unknownCommit:    {"receiver's commit unknown", 0.03},
	wrongClock:       {"receiver's clock wrong", 0.002},
	brokenConverter:  {"converter broken", 0.3},
	operated:         {"operated", 0.08},
	brokenLink:       {"connection broken", 0.002},
	brokenWork:       {"connection broken at work", 0.03},
	lateCommit:       {"publish committed late", 0.05},
}

var (
	errAway       = errors.New("simulation: the database is away")
	errUnknown    = errors.New("simulation: whether it was committed is not known")
	errRolledBack = errors.New("simulation: rolled back")
	errHandler    = errors.New("simulation: the handler failed")
	errConverter  = errors.New("simulation: the payload version cannot be made")
)

// drawFaults decides which faults a seed has, and how often: some seeds have few faults
// of all kinds, some many of one.
func (w *world) drawFaults() {
	for k := range w.odds {
		odds := often[k].p
		switch n := w.rand.IntN(10); {
		case w.cfg.NoFaults || n < 3:
			odds = 0
		case n == 9:
			odds *= 5
		}
		w.odds[k] = odds
	}
}

// fault draws whether a fault happens now.
func (w *world) fault(k kind) bool {
	if w.calm || w.odds[k] == 0 || w.rand.Float64() >= w.odds[k] {
		return false
	}
	w.counts[often[k].name]++
	return true
}

// between draws a duration; short ones are as likely as long ones.
func (w *world) between(least, most time.Duration) time.Duration {
	bits := 0
	for least<<bits < most {
		bits++
	}
	most = min(most, least<<w.rand.IntN(bits+1))
	return least + time.Duration(w.rand.Int64N(int64(most-least)+1)).Truncate(time.Microsecond)
}
