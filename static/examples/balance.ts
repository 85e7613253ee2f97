const answer = await fetch('__BASE_URL__/user/balance', {
  headers: { authorization: `Bearer ${process.env.MIZU_API_KEY}` },
});
const { balance_infos } = await answer.json();
console.log(balance_infos[0].total_balance, 'USD');
