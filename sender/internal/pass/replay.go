package pass

import "time"

// What is admitted and not claimed is counted, row by row, so it is not counted all the
// time: hundreds of replays may wait for endpoints that are slow.
const (
	leastReplayPause = 20 * time.Millisecond
	mostReplayPause  = 5 * time.Second
)

// ReplayPause is how long to leave a replay alone that waits for its deliveries to be
// claimed, and has waited for so long already: as long again, from 20 ms up to 5 s.
func ReplayPause(waited time.Duration) time.Duration {
	return min(max(waited, leastReplayPause), mostReplayPause)
}
