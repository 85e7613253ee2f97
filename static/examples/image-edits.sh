curl __BASE_URL__/v1/images/edits \
  -H "Authorization: Bearer $MIZU_API_KEY" \
  -F model=__MODEL__ \
  -F prompt="Let the sun rise" \
  -F "image[]=@harbour.png"
