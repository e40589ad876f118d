package parrot

import (
	"testing"

	"github.com/busdk/bus-agent/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{Runtime: Runtime(), Lines: backendtest.Lines{
		Session: `{"parrot":"hello","session":"p-1","model":"grey"}`,
		Text:    `{"parrot":"says","text":"{text}"}`,
		Success: `{"parrot":"done"}`,
		Failure: `{"parrot":"done","failed":true,"text":"{text}"}`,
		Unknown: `{"parrot":"sings"}`,
	}})
}
