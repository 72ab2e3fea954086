// The copy button of a console block copies its commands, without prompts and output.
document$.subscribe(() => {
  for (const block of document.querySelectorAll(".language-console")) {
    const commands = [];
    let inCommand = false;
    for (const line of block.querySelector("code").textContent.split("\n")) {
      inCommand = line.startsWith("$ ") || (inCommand && line.startsWith("> "));
      if (inCommand) commands.push(line.slice(2));
    }
    block.dataset.copy = commands.join("\n");
  }
});
