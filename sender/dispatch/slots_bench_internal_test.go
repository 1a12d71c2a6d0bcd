package dispatch

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// BenchmarkSlotsNext finds nothing that may go: the shared part of the proven lane is
// taken, and each subscription has more queued.
func BenchmarkSlotsNext(b *testing.B) {
	s := newSlots(slotsConfig{places: [sender.Lanes]int{sender.LaneNew: 32, sender.LaneProven: 384, sender.LaneProbation: 96}, perSubscription: 64, prefetch: 4, hardLimit: 1024})
	for range 2 {
		for sub := range int64(336) {
			s.add(claimed(sub, sub, sender.LaneProven))
		}
		drive(s)
	}
	require.Equal(b, 336, s.wire)
	require.Len(b, s.lane[sender.LaneProven].ready, 336)
	for b.Loop() {
		if s.next() != nil {
			b.Fatal("there was none")
		}
	}
}

// BenchmarkSlots takes deliveries of as many events, about as many objects, from the
// claim to the record.
func BenchmarkSlots(b *testing.B) {
	s := newSlots(slotsConfig{places: [sender.Lanes]int{sender.LaneNew: 32, sender.LaneProven: 384, sender.LaneProbation: 96}, perSubscription: 64, prefetch: 4, hardLimit: 1024})
	attempts := make([]*attempt, 1024)
	var wire []*attempt
	event := int64(0)
	for b.Loop() {
		for i := range attempts {
			event++
			attempts[i] = about(event%16, sender.LaneProven, strconv.FormatInt(event, 10), event, 1)
		}
		for _, a := range attempts {
			s.add(a)
		}
		for {
			for a := s.next(); a != nil; a = s.next() {
				wire = append(wire, a)
			}
			if len(wire) == 0 {
				break
			}
			a := wire[0]
			wire = wire[1:]
			s.finished(a, sender.ClassNone, time.Millisecond, time.Second)
			s.recorded(a)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(event), "ns/delivery")
}
