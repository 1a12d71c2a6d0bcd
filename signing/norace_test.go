//go:build !race

package signing_test

const raceDetector = false
