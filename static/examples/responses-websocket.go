package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

func main() {
	ctx := context.Background()
	url := strings.Replace("__BASE_URL__/v1/responses", "http", "ws", 1)
	header := http.Header{"Authorization": {"Bearer " + os.Getenv("MIZU_API_KEY")}}
	socket, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		panic(err)
	}
	defer socket.CloseNow()
	socket.SetReadLimit(-1)
	err = wsjson.Write(ctx, socket, map[string]any{"type": "response.create", "model": "__MODEL__", "input": "Why is the sea blue?"})
	for err == nil {
		var event struct{ Type, Delta string }
		err = wsjson.Read(ctx, socket, &event)
		fmt.Print(event.Delta)
		if event.Type == "response.completed" || event.Type == "response.incomplete" || event.Type == "response.failed" || event.Type == "error" {
			return
		}
	}
	panic(err)
}
