//go:build race

package signing_test

// raceDetector: sync.Pool drops items at random under it.
const raceDetector = true
