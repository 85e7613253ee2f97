package main

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
)

func main() {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	form.WriteField("model", "__MODEL__")
	form.WriteField("prompt", "Let the sun rise")
	part, err := form.CreateFormFile("image[]", "harbour.png")
	if err != nil {
		panic(err)
	}
	image, err := os.ReadFile("harbour.png")
	if err != nil {
		panic(err)
	}
	part.Write(image)
	form.Close()

	request, err := http.NewRequest("POST", "__BASE_URL__/v1/images/edits", &body)
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("MIZU_API_KEY"))
	request.Header.Set("Content-Type", form.FormDataContentType())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(response.Status, string(answer))
}
