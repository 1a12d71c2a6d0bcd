// Package post makes the same POST as a delivery does, with the same headers and
// the same signatures, as fast as net/http can, and nothing else: what everything
// else is compared with.
package post
